// A request as others would send it: curl, Python, JavaScript. Never with a key in it.

const BASE_URL = `${window.location.origin}/v1`;
// What OpenAI's client knows by name; the rest travels in extra_body.
const KNOWN = new Set(["model", "messages", "temperature", "top_p", "max_tokens", "seed", "stop", "tools", "stream", "input", "dimensions"]);

// The body of a chat as REST has it: the socket's shorthand for a system prompt becomes a message.
export function toChatBody({ system, messages, ...rest }) {
  const all = system ? [{ role: "system", content: system }, ...messages] : messages;
  return { ...rest, messages: all, stream: true };
}

export function writeChat(body) {
  return {
    curl: writeCurl("chat/completions", body),
    Python: writeClient("chat.completions.create", body, "stream", [
      "for chunk in stream:",
      "    if chunk.choices and chunk.choices[0].delta.content:",
      '        print(chunk.choices[0].delta.content, end="", flush=True)',
    ]),
    JavaScript: writeScript("chat.completions.create", body, "stream", [
      "for await (const chunk of stream) {",
      '  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");',
      "}",
    ]),
  };
}

export function writeEmbeddings(body) {
  return {
    curl: writeCurl("embeddings", body),
    Python: writeClient("embeddings.create", body, "answer", ["for item in answer.data:", "    print(item.embedding[:4])"]),
    JavaScript: writeScript("embeddings.create", body, "answer", [
      "for (const item of answer.data) console.log(item.embedding.slice(0, 4));",
    ]),
  };
}

// OpenAI's client knows no reranking.
export function writeRerank(body) {
  return {
    curl: writeCurl("rerank", body),
    Python: [
      "import os",
      "",
      "import requests",
      "",
      "answer = requests.post(",
      `    ${toPython(`${BASE_URL}/rerank`)},`,
      '    headers={"Authorization": f"Bearer {os.environ[\'LLAMERO_API_KEY\']}"},',
      `    json=${indent(toPython(body))},`,
      ")",
      "answer.raise_for_status()",
      'for result in answer.json()["results"]:',
      '    print(result["index"], result["relevance_score"])',
    ].join("\n"),
    JavaScript: [
      `const answer = await fetch(${JSON.stringify(`${BASE_URL}/rerank`)}, {`,
      '  method: "POST",',
      "  headers: {",
      "    Authorization: `Bearer ${process.env.LLAMERO_API_KEY}`,",
      '    "Content-Type": "application/json",',
      "  },",
      `  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),`,
      "});",
      "console.log((await answer.json()).results);",
    ].join("\n"),
  };
}

function writeCurl(route, body) {
  return [
    `curl ${BASE_URL}/${route} \\`,
    '  -H "Authorization: Bearer $LLAMERO_API_KEY" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d ${quoteForShell(JSON.stringify(body, null, 2))}`,
  ].join("\n");
}

function writeClient(call, body, name, rest) {
  const known = Object.entries(body).filter(([field]) => KNOWN.has(field));
  const others = Object.fromEntries(Object.entries(body).filter(([field]) => !KNOWN.has(field)));
  const lines = known.map(([field, value]) => `    ${field}=${indent(toPython(value))},`);
  if (Object.keys(others).length) lines.push(`    extra_body=${indent(toPython(others))},`);
  return [
    "import os",
    "",
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url=${toPython(BASE_URL)}, api_key=os.environ["LLAMERO_API_KEY"])`,
    `${name} = client.${call}(`,
    ...lines,
    ")",
    ...rest,
  ].join("\n");
}

function writeScript(call, body, name, rest) {
  return [
    'import OpenAI from "openai";',
    "",
    `const client = new OpenAI({ baseURL: ${JSON.stringify(BASE_URL)}, apiKey: process.env.LLAMERO_API_KEY });`,
    `const ${name} = await client.${call}(${JSON.stringify(body, null, 2)});`,
    ...rest,
  ].join("\n");
}

export function quoteForShell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// JSON's strings and numbers are Python's too.
export function toPython(value, depth = 0) {
  const inner = "    ".repeat(depth + 1);
  const outer = "    ".repeat(depth);
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => inner + toPython(item, depth + 1))
    : Object.entries(value).map(([key, item]) => `${inner}${JSON.stringify(key)}: ${toPython(item, depth + 1)}`);
  const [opening, closing] = isList ? ["[", "]"] : ["{", "}"];
  return items.length ? `${opening}\n${items.join(",\n")},\n${outer}${closing}` : opening + closing;
}

function indent(text) {
  return text.replaceAll("\n", "\n    ");
}
