// GET /openapi.json: the document of every route that is served (`OpenApi.ts`).
import { Effect, Layer } from "effect"
import { Crypto } from "../platform/Crypto.ts"
import { OpenApi } from "./OpenApi.ts"
import { makeRendered } from "./rendered.ts"
import { addRoutes, at, processRoutes, route } from "./Route.ts"
import { anything } from "./wireSchema.ts"

export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { text } = yield* OpenApi
    const rendered = makeRendered(yield* Crypto, {
      contentType: "application/json",
      headers: { "access-control-allow-origin": "*", "cache-control": "public, max-age=60" }
    })
    yield* addRoutes(processRoutes, [
      route(
        {
          ...at("GET", "/openapi.json", "openapi"),
          summary: "This document.",
          exposure: "public",
          callers: "public",
          cost: { cpuMillis: 5, bytesOut: 524_288 },
          answers: { 200: { description: "OpenAPI 3.1.", body: anything("The document.") } }
        },
        (request) => Effect.sync(() => rendered(request, text()))
      )
    ])
  })
)
