// Numbers and states in words.

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];
export const PARTS = { weights: "Model", lora: "LoRA adapter", mmproj: "Projector" };

// As the server writes them.
export function sizeInWords(bytes) {
  let unit = 0;
  while (bytes >= 1024 && unit < UNITS.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${bytes.toFixed(unit ? 1 : 0)} ${UNITS[unit]}`;
}

export function timeInWords(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

/** Suggest a published id for a model by the name of its file. */
export function suggestId(fileName) {
  return fileName
    .toLowerCase()
    .replace(/\.gguf$/, "")
    .replace(/-\d{5}-of-\d{5}$/, "")
    .replace(/[^a-z0-9._:/-]+/g, "-")
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "");
}
