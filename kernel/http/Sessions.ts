// Browser sessions, each on behalf of a listed key for some hours. A session is a cookie signed with the key itself, so
// every replica that lists the key accepts it, nothing is stored, and withdrawing the key ends its sessions. The cookie
// is sent by pages of this origin only (`SameSite=Strict`) and is not readable by scripts. A change also requires the
// header that our pages send, which no form and no page of another origin can.
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Base64Url } from "effect/encoding"
import type { HttpServerRequest } from "effect/http"
import { Crypto } from "../platform/Crypto.ts"
import { Keys, type Role } from "./Keys.ts"

export interface Session {
  readonly role: Role
  /** The label of the key, or its hash's beginning. */
  readonly principal: string
  readonly untilSeconds: number
}

/** A session lives this long. */
const hoursMax = 12
/** What the clocks of two replicas may differ by. */
export const clockSecondsMax = 300
const cookieName = "tollkeeper_session"
/** Sent by our pages with what changes something. */
export const pageHeader = "x-tollkeeper-page"
const form = /^(operator|caller)\.([a-z0-9-]{1,32})\.([0-9]{1,12})\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{43})$/

/** The cookie of that name, the first when there are several. */
export const cookieOf = (request: HttpServerRequest.HttpServerRequest, name: string): string | undefined =>
  (request.headers["cookie"] ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .find((pair) => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1)

/** Whether the request is from a page of ours: its own origin, when the browser names one, and our pages' header. */
export const isFromPage = (request: HttpServerRequest.HttpServerRequest): boolean => {
  if (request.headers[pageHeader] !== "1") return false
  const origin = request.headers["origin"]
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === request.headers["host"])
}

/** CSRF check: a session authenticates a request that only reads, or one that a page of ours sent. */
export const passesCsrfCheck = (request: HttpServerRequest.HttpServerRequest): boolean =>
  request.method === "GET" || request.method === "HEAD" || isFromPage(request)

export class Sessions extends Context.Service<
  Sessions,
  {
    /** A cookie for a listed key, an operator's before a caller's; None when it is not listed. */
    readonly open: (
      bearer: string,
      overTls: boolean
    ) => Option.Option<{ readonly session: Session; readonly cookie: string }>
    /** The cookie that ends a session in the browser that has it. */
    readonly closed: string
    /** The session of a request; None without one, and for what changes something and is not sent by a page of ours. */
    readonly of: (request: HttpServerRequest.HttpServerRequest) => Option.Option<Session>
  }
>()("tollkeeper/http/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const keys = yield* Keys
      const crypto = yield* Crypto
      const clock = yield* Clock.Clock
      const bytesOf = (text: string) => new TextEncoder().encode(text)
      const nowSeconds = () => Math.floor(clock.currentTimeMillisUnsafe() / 1_000)
      const attributes = `Path=/; HttpOnly; SameSite=Strict`

      const open: Sessions["Service"]["open"] = (bearer, overTls) => {
        const operator = keys.operator(bearer)
        const role: Role = Option.isSome(operator) ? "operator" : "caller"
        return Option.map(Option.isSome(operator) ? operator : keys.caller(bearer), (principal) => {
          const untilSeconds = nowSeconds() + hoursMax * 3_600
          const body = `${role}.${principal}.${untilSeconds}.${Base64Url.encode(crypto.randomBytes(12))}`
          const mac = Base64Url.encode(crypto.hmacSha256(crypto.sha256(bytesOf(bearer)), bytesOf(body)))
          const secure = overTls ? "; Secure" : ""
          const cookie = `${cookieName}=${body}.${mac}; ${attributes}; Max-Age=${hoursMax * 3_600}${secure}`
          return { session: { role, principal, untilSeconds }, cookie }
        })
      }

      const read = (token: string): Option.Option<Session> => {
        const [, role, principal, until, , mac] = form.exec(token) ?? []
        const left = Number(until) - nowSeconds()
        // One that would live longer was opened while this machine's clock was ahead.
        if (mac === undefined || left <= 0 || left > hoursMax * 3_600 + clockSecondsMax) return Option.none()
        const body = bytesOf(token.slice(0, token.lastIndexOf(".")))
        const given = bytesOf(mac)
        const signed = keys
          .proofs(role as Role, principal!, body)
          .filter((proof) => crypto.timingSafeEqual(bytesOf(Base64Url.encode(proof)), given))
        return signed.length === 0
          ? Option.none()
          : Option.some({ role: role as Role, principal: principal!, untilSeconds: Number(until) })
      }

      return Sessions.of({
        open,
        closed: `${cookieName}=; ${attributes}; Max-Age=0`,
        of: (request) =>
          passesCsrfCheck(request)
            ? Option.flatMap(Option.fromUndefinedOr(cookieOf(request, cookieName)), read)
            : Option.none()
      })
    })
  )
}
