// The description of the HTTP interface at /openapi.json, OpenAPI 3.1: each owner of routes describes its own, and what
// is off is not in it. The document is made anew for each request, so it always tells what is mounted now.
import { Context, Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { json } from "./Guard.ts"

/** Version of the interface (S307), not of the program. */
export const interfaceVersion = "0.1.0"

/** A JSON Schema of dialect 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

export interface Described {
  /** Path items by path, as OpenAPI has them. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Schemas that the paths refer to as `#/components/schemas/NAME`. */
  readonly schemas: Readonly<Record<string, JsonSchema>>
}

export class OpenApi extends Context.Service<
  OpenApi,
  {
    /** Adds an owner's routes to the document for as long as the Scope lives. */
    readonly describe: (described: Described) => Effect.Effect<void, never, import("effect").Scope.Scope>
    readonly document: () => Readonly<Record<string, unknown>>
  }
>()("tollkeeper/http/OpenApi") {
  static readonly layer = Layer.sync(OpenApi, () => {
    const parts = new Set<Described>()
    return OpenApi.of({
      describe: (described) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => parts.add(described)),
            () => Effect.sync(() => parts.delete(described))
          )
        ),
      document: () => ({
        openapi: "3.1.0",
        info: {
          title: "Tollkeeper",
          version: interfaceVersion,
          license: { name: "Apache-2.0", identifier: "Apache-2.0" }
        },
        paths: Object.assign({}, ...[...parts].map(({ paths }) => paths)),
        components: {
          schemas: Object.assign({}, ...[...parts].map(({ schemas }) => schemas)),
          securitySchemes: {
            bearer: { type: "http", scheme: "bearer", description: "Wanted only when keys are configured." }
          }
        }
      })
    })
  })
}

/** Describes an owner's routes while its Layer lives. */
export const describe = (described: Described) =>
  Layer.effectDiscard(Effect.flatMap(OpenApi, (openApi) => openApi.describe(described)))

export const routes = HttpRouter.use((router) =>
  Effect.flatMap(OpenApi, (openApi) =>
    router.add(
      "GET",
      "/openapi.json",
      Effect.sync(() => json(openApi.document(), { headers: { "access-control-allow-origin": "*" } }))
    )
  )
)
