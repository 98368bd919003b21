// The pages and their files over HTTP. They are the same for all users and contain no figures: the browser requests the
// data from the public routes. Files have entity tags (304 when unchanged) and are compressed for browsers that accept
// gzip.
import { Effect, Option } from "effect"
import { type HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Base64 } from "effect/encoding"
import { json } from "../../kernel/http/httpMiddleware.ts"
import { hasTag, makeRendered, takesGzip } from "../../kernel/http/rendered.ts"
import { type Handler, mountRoutes, type Route, route } from "../../kernel/http/Route.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { type Asset, Assets } from "./Assets.ts"
import { apiHtml, apiPath, apiPolicy, htmlOf, importMap, pages, policyOf } from "./pages.ts"

type Request = HttpServerRequest.HttpServerRequest

const common = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin"
}

const answerAsset = (request: Request, asset: Asset) => {
  const headers = { ...common, etag: asset.etag, "cache-control": "no-cache", vary: "accept-encoding" }
  if (hasTag(request, asset.etag)) return HttpServerResponse.empty({ status: 304, headers })
  const gzipped = takesGzip(request)
  return HttpServerResponse.uint8Array(gzipped ? asset.gzipped : asset.bytes, {
    contentType: asset.contentType,
    headers: gzipped ? { ...headers, "content-encoding": "gzip" } : headers
  })
}

const pageAnswer = (crypto: Crypto["Service"], html: string, policy: string): Handler => {
  const rendered = makeRendered(crypto, {
    contentType: "text/html; charset=utf-8",
    headers: { ...common, "content-security-policy": policy, "cache-control": "no-cache" }
  })
  return (request) => Effect.sync(() => rendered(request, html))
}

/** A page or a file. Only this origin may read those of the dashboard. */
const pageRoute = (path: string, handler: Handler) =>
  route(
    {
      method: "GET",
      path: path as HttpRouter.PathInput,
      exposure: "page",
      callers: "public",
      // A library's file is the largest.
      cost: { cpuMillis: 5, bytesOut: path.startsWith("/dashboard/library") ? 2_097_152 : 131_072 },
      cors: path.startsWith("/dashboard") ? "own" : "allowed"
    },
    handler
  )

export const addPageRoutes = Effect.gen(function* () {
  const assets = yield* Assets
  const crypto = yield* Crypto
  const policy = policyOf(Base64.encode(crypto.sha256(new TextEncoder().encode(importMap))))
  const shown: Array<Route> = [pageRoute(apiPath, pageAnswer(crypto, apiHtml, apiPolicy))]
  for (const page of pages) {
    const body = htmlOf(page, yield* assets.closure(page.module))
    shown.push(pageRoute(page.path, pageAnswer(crypto, body, policy)))
  }
  const file = (request: Request) =>
    Effect.map(
      assets.find(new URL(request.url, "http://localhost").pathname),
      Option.match({
        onNone: () => json({ error: "not_found" }, { status: 404 }),
        onSome: (asset) => answerAsset(request, asset)
      })
    )
  for (const folder of ["/dashboard/web", "/dashboard/library", "/examples/receipts"])
    shown.push(pageRoute(`${folder}/:file`, file))
  yield* mountRoutes(shown)
})
