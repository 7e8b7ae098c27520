// Shows the API's document. Keys that are entered are kept in memory alone.
"use strict";
(function () {
  const root = document.documentElement;
  const place = document.getElementById("reference");

  // Swagger UI names its dark colours by a class of its own.
  function followTheme() {
    root.classList.toggle("dark-mode", root.classList.contains("dark"));
  }

  followTheme();
  new MutationObserver(followTheme).observe(root, { attributeFilter: ["class"] });

  window.SwaggerUIBundle({
    domNode: place,
    url: place.dataset.document,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    // No picture from elsewhere that says whether the document is valid.
    validatorUrl: null,
  });
})();
