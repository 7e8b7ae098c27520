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
