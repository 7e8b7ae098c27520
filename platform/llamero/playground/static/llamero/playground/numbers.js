// Counts and times as people read them.

export function formatRate(tokensPerSecond) {
  return `${tokensPerSecond.toFixed(tokensPerSecond < 100 ? 1 : 0)} tok/s`;
}

export function formatSeconds(milliseconds) {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}

export function countTokens(count) {
  return `${count.toLocaleString("en")} ${count === 1 ? "token" : "tokens"}`;
}

const END_WORDS = { length: "token limit reached", cancelled: "stopped" };

// What the end of an answer tells, in parts.
export function describeOutcome({ finish_reason: reason, usage, timings }, firstTokenMs = 0) {
  if (!usage) return [];
  const parts = [];
  if (timings.predicted_per_second > 0) parts.push(formatRate(timings.predicted_per_second));
  if (firstTokenMs) parts.push(`first token ${formatSeconds(firstTokenMs)}`);
  parts.push(countTokens(usage.completion_tokens));
  if (usage.reasoning_tokens) parts.push(`${usage.reasoning_tokens} of them reasoning`);
  const cached = usage.cached_tokens ? ` (${usage.cached_tokens} cached)` : "";
  if (usage.prompt_tokens) parts.push(`prompt ${usage.prompt_tokens}${cached}`);
  if (END_WORDS[reason]) parts.push(END_WORDS[reason]);
  return parts;
}
