// The SHA-256 of files, computed beside the page: a file of tens of GB takes minutes.

// One at a time: two would only fight for the disk.
let last = Promise.resolve();

/** Give the hash of a file as a promise; `onProgress` hears how many bytes are done. */
export function hashFile(file, onProgress = () => {}) {
  const hashing = last.then(() => hashNow(file, onProgress));
  last = hashing.catch(() => {});
  return hashing;
}

function hashNow(file, onProgress) {
  return new Promise((resolve, reject) => {
    const worker = new Worker("/static/models_registry/upload/hash_worker.js");
    const fail = (words) => {
      worker.terminate();
      reject(new Error(words));
    };
    worker.onerror = () => fail("The file could not be hashed.");
    worker.onmessage = ({ data }) => {
      if (data.failure) return fail(`The file could not be read: ${data.failure}`);
      if (data.done !== undefined) return onProgress(data.done);
      worker.terminate();
      resolve(data.sha256);
    };
    worker.postMessage({ file });
  });
}
