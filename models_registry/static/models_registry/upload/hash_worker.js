// Hashes one file apart from the page, piece by piece: {file} in, {done} and at last {sha256} out.
"use strict";

importScripts("/static/llamero/vendor/sha256.js");

const PIECE_BYTES = 8 * 1024 * 1024;

onmessage = async ({ data: { file } }) => {
  try {
    const hash = await hashwasm.createSHA256();
    for (let begin = 0; begin < file.size; begin += PIECE_BYTES) {
      const piece = await file.slice(begin, begin + PIECE_BYTES).arrayBuffer();
      hash.update(new Uint8Array(piece));
      postMessage({ done: Math.min(begin + PIECE_BYTES, file.size) });
    }
    postMessage({ sha256: hash.digest("hex") });
  } catch (error) {
    postMessage({ failure: String(error) });
  }
};
