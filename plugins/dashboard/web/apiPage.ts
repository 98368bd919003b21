// The page of the interface: Swagger UI draws /openapi.json, and what is tried there goes to this facilitator alone.
// What a reader wrote into it is not kept. Keys are asked for by "Authorize".
declare const SwaggerUIBundle: (options: Readonly<Record<string, unknown>>) => unknown

SwaggerUIBundle({
  url: "/openapi.json",
  domNode: document.getElementById("api"),
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  validatorUrl: null,
  syntaxHighlight: { activated: false }
})
