// The API page: Swagger UI renders /openapi.json. It sends requests to this facilitator only. Input is not kept;
// "Authorize" takes keys. We correct its output for screen readers as it appears: every part has a name, headings are
// in order, and no button contains a link (deep links would add them). It follows the reader's theme.
declare const SwaggerUIBundle: (options: Readonly<Record<string, unknown>>) => unknown

const place = document.getElementById("api")!

/** Parts outside the viewer's main one, with their labels. */
const parts: ReadonlyArray<readonly [selector: string, label: string]> = [
  ["section.block:has(> div > .info), section.block:has(> .info)", "About"],
  ["section.schemes", "Keys"],
  ["section.models", "Schemas"]
]

/** An opened route: its request and response are focusable and labeled. */
const mendOpened = (): void => {
  for (const text of place.querySelectorAll("pre.microlight:not([tabindex])")) text.setAttribute("tabindex", "0")
  for (const body of place.querySelectorAll("textarea.body-param__text:not([aria-label])"))
    body.setAttribute("aria-label", "Request body")
  for (const answers of place.querySelectorAll("table.responses-table[id]:not([aria-label])"))
    answers.setAttribute("aria-label", `Responses of ${answers.id.replace(/_responses$/, "").replaceAll("_", " ")}`)
  for (const heading of place.querySelectorAll("h4.opblock-title:not([aria-level])")) {
    heading.setAttribute("role", "heading")
    heading.setAttribute("aria-level", "3")
  }
}

const mend = (): void => {
  mendOpened()
  for (const [selector, label] of parts)
    for (const part of place.querySelectorAll(`:is(${selector}):not([aria-label])`))
      part.setAttribute("aria-label", label)
  for (const heading of place.querySelectorAll(":is(h3.opblock-tag, section.models h4):not([aria-level])")) {
    heading.setAttribute("role", "heading")
    heading.setAttribute("aria-level", "2")
  }
}
const theme = matchMedia("(prefers-color-scheme: dark)")
const follow = (): void => void document.documentElement.classList.toggle("dark-mode", theme.matches)
theme.addEventListener("change", follow)
follow()
new MutationObserver(mend).observe(place, { childList: true, subtree: true })

SwaggerUIBundle({
  url: "/openapi.json",
  domNode: place,
  deepLinking: false,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  validatorUrl: null,
  syntaxHighlight: { activated: false }
})
