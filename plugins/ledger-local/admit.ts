// Access control of the embedded ledger. It does not use keys and funds any account. So at the loopback address it only
// answers programs and our own pages: the Host must be this machine's (or one of the test network's, because official
// clients hard-code them), and pages of another origin are refused. At any other address it serves others and accepts
// any Host.
import { Effect } from "effect"
import { parseHostName, isCrossOrigin, isLoopback } from "../../kernel/http/hostValidation.ts"
import { servedNames } from "./node/certificate.ts"

interface AdmitOptions {
  /** The address that the listener is bound to. */
  readonly host: string
  /** Origins of pages that may ask, in lower case. */
  readonly allowedOrigins: ReadonlyArray<string>
}

const forbidden = (detail: string): Response =>
  new Response(JSON.stringify({ type: "about:blank", title: "Forbidden", status: 403, detail }), {
    status: 403,
    headers: { "content-type": "application/json; charset=utf-8", vary: "origin" }
  })

const corsOf = (origin: string): Readonly<Record<string, string>> => ({
  "access-control-allow-origin": origin,
  "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
  "access-control-allow-headers": "content-type, x-client-name, x-client-version",
  "access-control-max-age": "600",
  vary: "origin"
})

/** Answers an admitted request with `handle`, and lets an allowed page read the answer. */
export const admit =
  ({ allowedOrigins, host }: AdmitOptions, handle: (request: Request) => Effect.Effect<Response>) =>
  (request: Request): Effect.Effect<Response> => {
    const headers = Object.fromEntries(request.headers)
    const name = parseHostName(headers["host"] ?? new URL(request.url).host)
    const isOwn = name !== undefined && (isLoopback(name) || servedNames.includes(name))
    if (isLoopback(host) && !isOwn) return Effect.succeed(forbidden("this name is not answered here"))
    if (isCrossOrigin(headers, allowedOrigins))
      return Effect.succeed(
        forbidden("pages of this origin may not call; local_ledger.allowed_origins lists the allowed origins")
      )
    const origin = headers["origin"]
    if (origin === undefined) return handle(request)
    return Effect.map(handle(request), (response) => {
      for (const [key, value] of Object.entries(corsOf(origin))) response.headers.set(key, value)
      return response
    })
  }
