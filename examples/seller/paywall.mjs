// @ts-check
// A seller's 402 as a page for people. It shows the goods, the price, and a button that connects a Stellar wallet
// (SEP-43, such as Freighter), has it sign, pays and shows the purchase. One function, in the form of the official
// middleware's paywall hook, which `makeSell` also accepts as `paywall`. No dependency; the page calls only the seller
// and has a strict policy. A visitor pays once: the page keeps the payment and sends the same one again. Only `exact`.
//
//   paymentMiddleware(routes, server, {}, paywall({ prepareUrl: "/x402/prepare" }))
//   app.post("/x402/prepare", prepareProxy({ facilitator }))
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"

const script = readFileSync(new URL("paywallScript.mjs", import.meta.url), "utf8")

const style = `
:root {
  color-scheme: light dark;
  --ink: light-dark(#1a1a1a, #eee);
  --quiet: light-dark(#595959, #aaa);
  --ground: light-dark(#fff, #161616);
  --line: light-dark(#ccc, #444);
  --act: light-dark(#0b57d0, #8ab4f8);
  --on: light-dark(#fff, #111);
  --bad: light-dark(#b3261e, #f2b8b5);
}
body { font: 17px/1.5 system-ui, sans-serif; margin: 0; color: var(--ink); background: var(--ground) }
main { max-width: 32rem; margin: 10vh auto; padding: 0 1.25rem }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere }
p { margin: .5rem 0 }
.price { font-size: 2rem; font-weight: 600; font-variant-numeric: tabular-nums; margin: 1.25rem 0 0 }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin: 1rem 0 1.5rem }
dl { padding: 1rem 0 0; border-top: 1px solid var(--line); font-size: .9rem; color: var(--quiet) }
dd { margin: 0; overflow-wrap: anywhere }
button { font: inherit; font-weight: 600; padding: .75rem 1.25rem; border: 0; border-radius: .5rem }
button { color: var(--on); background: var(--act); cursor: pointer }
button:disabled { opacity: .6; cursor: progress }
:focus-visible { outline: 3px solid var(--act); outline-offset: 3px }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line); padding: 1rem }
.error { color: var(--bad) }
a { color: var(--act) }
`

const sha256 = (/** @type {string} */ text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`
const escaped = (/** @type {unknown} */ text) =>
  String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)

/** Symbols and decimals of assets by contract: USDC of the test network and of pubnet. */
const usdc = {
  CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA: { symbol: "USDC", decimals: 7 },
  CCW67TSZV3SSS2HXMBQ5JFGCKJNXKZM7UQUWUZPUTHXSTZLEO7SJMI75: { symbol: "USDC", decimals: 7 }
}

/** An amount with its symbol. @param {string} amount @param {{ symbol: string, decimals: number } | undefined} asset */
const priceOf = (amount, asset) => {
  if (asset === undefined) return `${amount} atomic units`
  const digits = amount.padStart(asset.decimals + 1, "0")
  const whole = digits.slice(0, digits.length - asset.decimals)
  const part = digits.slice(digits.length - asset.decimals).replace(/0+$/, "")
  return `${BigInt(whole).toLocaleString("en-GB")}.${part.padEnd(2, "0")} ${asset.symbol}`
}

const short = (/** @type {string} */ address) => `${address.slice(0, 6)}…${address.slice(-6)}`

/**
 * The page of one 402. The seller's text is inert in it.
 * @param {any} required the PaymentRequired
 * @param {{ prepareUrl: string, assets?: Record<string, { symbol: string, decimals: number }>,
 *   title?: string, seller?: string }} options `seller`: its name, shown with the domain
 */
export const paywallHtml = (required, { assets = {}, prepareUrl, seller, title }) => {
  const accepted = required.accepts.find((/** @type {any} */ one) => one.scheme === "exact")
  if (accepted === undefined) throw new Error("a paywall takes exact payments alone")
  const known = /** @type {Record<string, { symbol: string, decimals: number }>} */ ({ ...usdc, ...assets })
  const name = title ?? (required.resource?.description || required.resource?.url || "This page")
  const price = priceOf(accepted.amount, known[accepted.asset])
  const { url = "" } = required.resource ?? {}
  const domain = URL.canParse(url) ? new URL(url).host : "this site"
  const data = JSON.stringify({ required, accepted, prepareUrl }).replace(/</g, "\\u003c")
  const policy = [
    "default-src 'none'",
    `script-src ${sha256(script)}`,
    `style-src ${sha256(style)}`,
    // No request leaves the seller's origin, not even by a redirect: it would take the payment along.
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'"
  ].join("; ")
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<title>${escaped(name)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escaped(name)}</h1>
<p>Pay once to read it.</p>
<p class="price">${escaped(price)}</p>
<dl>
<dt>Seller</dt><dd>${seller === undefined ? "" : `${escaped(seller)}, `}<span id="domain">${escaped(domain)}</span></dd>
<dt>Paid to</dt><dd title="${escaped(accepted.payTo)}">${escaped(short(accepted.payTo))}</dd>
<dt>Network</dt><dd>Stellar ${escaped(accepted.network.split(":")[1])}; the network fee is paid for you</dd>
</dl>
<button id="pay" type="button">Pay ${escaped(price)} with a wallet</button>
<noscript><p>Paying needs this page's script: allow it, then load the page again.</p></noscript>
<p id="say" role="status"></p>
<p id="way" hidden>On a phone, links to wallets cannot sign this kind of payment. Open this page in a
wallet's own browser, or on a computer with <a href="https://www.freighter.app">Freighter</a>.</p>
<div id="content"></div>
</main>
<script type="application/json" id="required">${data}</script>
<script type="module">${script}</script>
</body>
</html>
`
}

/** Headers of a 402 page: no other site may show it in a frame, where a visitor does not see the payee. */
export const paywallHeaders = { "content-security-policy": "frame-ancestors 'none'", "x-frame-options": "DENY" }

/** In the form of the official middleware's paywall hook. @param {Parameters<typeof paywallHtml>[1]} options */
export const paywall = (options) => ({
  headers: paywallHeaders,
  /** @param {any} required */
  generateHtml: (required) => paywallHtml(required, options)
})

/** Bytes of a request to prepare. */
const prepareBytesMax = 65_536

/** The body as text; undefined if it is too long, and the rest is not read. @param {Request} request */
const textWithin = async (request) => {
  if (Number(request.headers.get("content-length") ?? 0) > prepareBytesMax) return undefined
  const chunks = []
  let bytes = 0
  for await (const chunk of /** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (request.body ?? []))) {
    bytes += chunk.length
    if (bytes > prepareBytesMax) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

/** Counts calls per minute and visitor. @param {number} perMinute @param {number} perMinuteInAll */
const countVisitors = (perMinute, perMinuteInAll) => {
  /** @type {Map<string, number>} */
  let calls = new Map()
  let [begun, all] = [0, 0]
  return (/** @type {string} */ visitor) => {
    const now = performance.now()
    if (all === 0 || now - begun >= 60_000) [calls, begun, all] = [new Map(), now, 0]
    const count = (calls.get(visitor) ?? 0) + 1
    if (count > perMinute || all >= perMinuteInAll) return false
    calls.set(visitor, count)
    all += 1
    return true
  }
}

/**
 * `POST /prepare` of the facilitator at the seller's own origin, because browsers call no other. Takes a Request and
 * returns a Response. It spends the seller's quota at the facilitator, so pass each visitor's address as the second
 * argument. Without addresses all visitors share one limit.
 * @param {{ facilitator: string, apiKey?: string, perMinute?: number, perMinuteInAll?: number }} options `perMinute`:
 *   calls of one visitor, default 20; `perMinuteInAll`: calls of all, default 600
 */
export const prepareProxy = ({ apiKey, facilitator, perMinute = 20, perMinuteInAll = 600 }) => {
  const isAdmitted = countVisitors(perMinute, perMinuteInAll)
  /** @param {Request} request @param {string} [visitor] */
  return async (request, visitor = "") => {
    if (!isAdmitted(visitor))
      return Response.json({ error: "rate_limited" }, { status: 429, headers: { "retry-after": "60" } })
    const body = await textWithin(request)
    if (body === undefined) return Response.json({ error: "body_too_large" }, { status: 413 })
    const headers = { "content-type": "application/json", ...(apiKey && { authorization: `Bearer ${apiKey}` }) }
    const answer = await fetch(`${facilitator}/prepare`, { method: "POST", redirect: "manual", headers, body })
    return new Response(await answer.text(), {
      status: answer.status,
      headers: { "content-type": "application/json" }
    })
  }
}
