// The pages as HTML, and their content security policy. A page has a heading that is painted before any script loads,
// and imports one module, which renders everything else. The only inline script is the import map, which the policy
// allows by its hash. Pure.
import { libraries } from "./Assets.ts"

interface Page {
  readonly path: string
  readonly title: string
  /** Our module that renders the page. */
  readonly module: string
}

export const pages: ReadonlyArray<Page> = [
  { path: "/", title: "Tollkeeper", module: "visitorPage.ts" },
  { path: "/dashboard", title: "Dashboard · Tollkeeper", module: "operatorPage.ts" },
  { path: "/seller", title: "Selling · Tollkeeper", module: "sellerPage.ts" },
  { path: "/receipts", title: "Receipts · Tollkeeper", module: "receiptPage.ts" },
  { path: "/resource", title: "Resource · Tollkeeper", module: "publicPage.ts" },
  { path: "/payee", title: "Recipient · Tollkeeper", module: "publicPage.ts" }
]

export const importMap = JSON.stringify({
  imports: Object.fromEntries(Object.entries(libraries).map(([name, file]) => [name, `/dashboard/library/${file}`]))
})

/**
 * The API page: Swagger UI over /openapi.json, so that each route can be tried against this facilitator. Its library
 * writes markup and inline images, so it has its own policy.
 */
export const apiPath = "/docs"

export const apiPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

export const apiHtml = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API · Tollkeeper</title>
<link rel="icon" href="/dashboard/web/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/dashboard/library/api.css">
<link rel="stylesheet" href="/dashboard/web/style.css">
<link rel="stylesheet" href="/dashboard/web/api.css">
<script defer src="/dashboard/library/api.js"></script>
<script type="module" src="/dashboard/web/apiPage.ts"></script>
</head>
<body>
<header class="bar"><a class="skip" href="#main">Skip to the content</a><a class="brand" href="/">Tollkeeper</a>
<nav aria-label="Pages"><a href="/">Catalog</a><a href="/seller">Selling</a><a href="/dashboard">Dashboard</a>
<a href="/receipts">Receipts</a><a href="/docs" aria-current="page">API</a><a href="/status">Status</a></nav></header>
<div id="main" class="interface"><section class="panel" aria-labelledby="quickstart">
<h2 id="quickstart">Quickstart</h2>
<p>A seller answers an unpaid request with 402 and its terms. It sends the buyer's signed payment and the same terms
here twice: first to verify it, then, once the resource is ready, to settle it.</p>
<pre tabindex="0">curl /supported                                    # schemes, networks, and the fee sponsor
curl -X POST /verify -H 'content-type: application/json' -d @payment.json   # {"isValid": true, …}
curl -X POST /settle -H 'content-type: application/json' -d @payment.json   # {"success": true, …}</pre>
<p>payment.json is <code>{"x402Version": 2, "paymentPayload": …, "paymentRequirements": …}</code>. Where callers have
keys, add <code>-H 'authorization: Bearer KEY'</code>. Every route below can be tried here.</p></section>
<div id="api"><p class="quiet">Loading…</p></div>
<noscript><p>This page is drawn by a script; <a href="/openapi.json">/openapi.json</a> says the same.</p></noscript>
</div>
</body>
</html>
`

/** `mapHash` is the sha256 of the import map, in base64. The policy blocks every other origin. */
export const policyOf = (mapHash: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' 'sha256-${mapHash}'`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'"
  ].join("; ")

export const htmlOf = ({ module, title }: Page, modules: ReadonlyArray<string>): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="An x402 payment facilitator for the Stellar ledger">
<title>${title}</title>
<link rel="icon" href="/dashboard/web/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/dashboard/library/uplot.css">
<link rel="stylesheet" href="/dashboard/web/style.css">
<script type="importmap">${importMap}</script>
${modules.map((path) => `<link rel="modulepreload" href="${path}">`).join("\n")}
<script type="module" src="/dashboard/web/${module}"></script>
</head>
<body>
<div id="page"><header class="bar"><a class="brand" href="/">Tollkeeper</a></header>
<main id="main"><p class="quiet">Loading…</p>
<noscript><p>This page is drawn by a script of this facilitator. Without it, everything here is JSON:
<a href="/openapi.json">/openapi.json</a> describes it, <a href="/discovery/resources">/discovery/resources</a> is the
catalog.</p></noscript></main></div>
</body>
</html>
`
