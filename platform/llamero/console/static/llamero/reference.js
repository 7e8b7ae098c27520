// Shows the API's document. A key that is entered is kept for this tab until it is closed, so that
// a reload does not ask for it again. Swagger UI's own way, persistAuthorization, is localStorage:
// there a key would lie for ever, on machines that are shared too, and open to every tab. Scripts
// could read either, but this site's policy runs none but its own.
"use strict";
(function () {
  const root = document.documentElement;
  const place = document.getElementById("reference");

  const KEPT = "llamero-reference-authorized";

  // Called by Swagger UI whenever a key was entered or taken back.
  const keepForThisTab = () => ({
    statePlugins: {
      auth: {
        wrapActions: {
          persistAuthorizationIfNeeded: (_original, system) => () => {
            const authorized = system.authSelectors.authorized().toJS();
            sessionStorage.setItem(KEPT, JSON.stringify(authorized));
          },
        },
      },
    },
  });

  // Swagger UI names its dark colours by a class of its own.
  function followTheme() {
    root.classList.toggle("dark-mode", root.classList.contains("dark"));
  }

  followTheme();
  new MutationObserver(followTheme).observe(root, { attributeFilter: ["class"] });

  const page = window.SwaggerUIBundle({
    domNode: place,
    url: place.dataset.document,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    // No picture from elsewhere that says whether the document is valid.
    validatorUrl: null,
    plugins: [keepForThisTab],
    onComplete() {
      const kept = sessionStorage.getItem(KEPT);
      if (kept !== null) page.authActions.restoreAuthorization({ authorized: JSON.parse(kept) });
    },
  });
})();
