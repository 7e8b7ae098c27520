// Buttons that copy what a field holds: <button type="button" data-copies="ID OF THE FIELD">.

async function copyField(field) {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    // Pages without HTTPS have no clipboard; what is selected can be copied all the same.
    document.execCommand("copy");
  }
}

for (const button of document.querySelectorAll("[data-copies]")) {
  const field = document.getElementById(button.dataset.copies);
  button.addEventListener("click", async () => {
    await copyField(field);
    button.textContent = "Copied";
  });
}
