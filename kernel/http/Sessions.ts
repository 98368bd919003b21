// Browser sessions, each on behalf of a listed key for some hours. A session is a cookie signed with the key itself, so
// every replica that lists the key accepts it, and nothing is stored. Withdrawing the key ends its sessions; signing
// out also ends every copy of the cookie (`accounts/EndedSessions.ts`). The cookie is sent by pages of this origin only
// (`SameSite=Strict`) and is not readable by scripts. Over TLS its name has the prefix `__Host-`, which no other host
// of the domain can set; of two cookies with one name neither counts. A change also requires the header that our pages
// send; a form or a page of another origin cannot send it.
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Base64Url } from "effect/encoding"
import type { HttpServerRequest } from "effect/http"
import { Crypto } from "../platform/Crypto.ts"
import { Keys, type Role } from "./Keys.ts"

interface Session {
  readonly role: Role
  /** The label of the key, or the beginning of its hash. */
  readonly principal: string
  readonly untilSeconds: number
}

const hoursMax = 12
/** Maximum difference between the clocks of two replicas. */
export const clockSecondsMax = 300
const cookieName = "tollkeeper_session"
/** Our pages send this header with each request that changes something. */
const pageHeader = "x-tollkeeper-page"

/**
 * Whether one of our pages or a program sent the request, for the audit trail. This is not a proof: a program may send
 * the header too.
 */
export const viaOf = ({ headers }: HttpServerRequest.HttpServerRequest): "page" | "api" =>
  headers[pageHeader] === undefined ? "api" : "page"

const form = /^(operator|caller)\.([a-z0-9-]{1,32})\.([0-9]{1,12})\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{43})$/

/** The cookie's name: over TLS only this very host can set it. */
const cookieNameOver = (name: string, overTls: boolean): string => (overTls ? `__Host-${name}` : name)

/**
 * The value of the cookie with exactly this name; undefined if there are two, because one of them may be another
 * host's.
 */
const valueOf = (request: HttpServerRequest.HttpServerRequest, name: string): string | undefined => {
  // A head has tens of kilobytes: a split of that many semicolons would cost more than most requests.
  const [first, ...others] = (request.headers["cookie"] ?? "").matchAll(RegExp(`(?:^|;)\\s*${name}=([^;]*)`, "g"))
  return others.length === 0 ? first?.[1]?.trim() : undefined
}

interface SentCookie {
  readonly value: string
  /** Whether the cookie was set over TLS: a value is not valid under the other name. */
  readonly overTls: boolean
}

/** The cookie of that name; a cookie set over TLS takes precedence. */
export const cookieOf = (request: HttpServerRequest.HttpServerRequest, name: string): SentCookie | undefined => {
  for (const overTls of [true, false]) {
    const value = valueOf(request, cookieNameOver(name, overTls))
    if (value !== undefined) return { value, overTls }
  }
  return undefined
}

/** Whether the browser uses TLS, to us or to a proxy in front, by the origin that it sends with a change. */
export const isOverTls = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  (headers["origin"] ?? "").startsWith("https:")

/** A cookie with the attributes of every session: only for this host and its pages, unreadable by scripts. */
export const sessionCookie = (
  name: string,
  {
    maxAgeSeconds,
    overTls,
    value
  }: { readonly maxAgeSeconds: number; readonly overTls: boolean; readonly value: string }
): string =>
  `${cookieNameOver(name, overTls)}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}` +
  (overTls ? "; Secure" : "")

/** Whether one of our pages sent the request: it has our origin, if the browser sends one, and our pages' header. */
export const isFromPage = (request: HttpServerRequest.HttpServerRequest): boolean => {
  if (request.headers[pageHeader] !== "1") return false
  const origin = request.headers["origin"]
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === request.headers["host"])
}

/** CSRF check: a session authenticates a request that only reads, or a request that our pages sent. */
export const passesCsrfCheck = (request: HttpServerRequest.HttpServerRequest): boolean =>
  request.method === "GET" || request.method === "HEAD" || isFromPage(request)

/** The name of a key's session among ended ones; `*`: every session of that key that ends no later. */
export const endedName = ({ principal, role }: Omit<Session, "untilSeconds">, id: string): string =>
  `${role}.${principal}.${id}`

/** A session that was signed out of, by `endedName`, and when it would have ended. */
interface EndedSession {
  readonly name: string
  readonly untilSeconds: number
}

export class Sessions extends Context.Service<
  Sessions,
  {
    /** A cookie for a listed key, an operator's before a caller's; None if the key is not listed. */
    readonly open: (
      bearer: string,
      overTls: boolean
    ) => Option.Option<{ readonly session: Session; readonly cookie: string }>
    /** The cookie that ends a session in the browser that has it. */
    readonly closed: (overTls: boolean) => string
    /** The session that a request's cookie is, from any page, and its random part; undefined without one. */
    readonly named: (request: HttpServerRequest.HttpServerRequest) => (Session & { readonly id: string }) | undefined
    /** From now on these sessions are invalid. Expired sessions are removed. */
    readonly setEnded: (ended: ReadonlyArray<EndedSession>) => void
    /** The session of a request. None without one, and None for a change that our pages did not send. */
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
      const ended = new Map<string, number>()

      /** The signed bytes include the cookie's name, so that a cookie of plain HTTP is not valid over TLS. */
      const signedOf = (body: string, overTls: boolean) => bytesOf(`${cookieNameOver(cookieName, overTls)} ${body}`)

      const open: Sessions["Service"]["open"] = (bearer, overTls) => {
        const operator = keys.operator(bearer)
        const role: Role = Option.isSome(operator) ? "operator" : "caller"
        return Option.map(Option.isSome(operator) ? operator : keys.caller(bearer), (principal) => {
          const untilSeconds = nowSeconds() + hoursMax * 3_600
          const body = `${role}.${principal}.${untilSeconds}.${Base64Url.encode(crypto.randomBytes(12))}`
          const mac = crypto.hmacSha256(crypto.sha256(bytesOf(bearer)), signedOf(body, overTls))
          const value = `${body}.${Base64Url.encode(mac)}`
          const cookie = sessionCookie(cookieName, { value, overTls, maxAgeSeconds: hoursMax * 3_600 })
          return { session: { role, principal, untilSeconds }, cookie }
        })
      }

      const read = ({ overTls, value }: SentCookie): Option.Option<Session & { readonly id: string }> => {
        const [, word, principal = "", until, id = "", mac] = form.exec(value) ?? []
        const role = word as Role
        const left = Number(until) - nowSeconds()
        // A session with a longer life was opened while this machine's clock was ahead.
        if (mac === undefined || left <= 0 || left > hoursMax * 3_600 + clockSecondsMax) return Option.none()
        const allUntil = ended.get(endedName({ role, principal }, "*")) ?? 0
        if (Number(until) <= allUntil || ended.has(endedName({ role, principal }, id))) return Option.none()
        const signed = signedOf(value.slice(0, value.lastIndexOf(".")), overTls)
        const given = bytesOf(mac)
        const proven = keys
          .proofs(role, principal, signed)
          .filter((proof) => crypto.timingSafeEqual(bytesOf(Base64Url.encode(proof)), given))
        return proven.length === 0 ? Option.none() : Option.some({ role, principal, untilSeconds: Number(until), id })
      }

      const sent = (request: HttpServerRequest.HttpServerRequest) =>
        Option.flatMap(Option.fromUndefinedOr(cookieOf(request, cookieName)), read)

      return Sessions.of({
        open,
        closed: (overTls) => sessionCookie(cookieName, { value: "", overTls, maxAgeSeconds: 0 }),
        of: (request) => (passesCsrfCheck(request) ? sent(request) : Option.none()),
        named: (request) => Option.getOrUndefined(sent(request)),
        setEnded: (sessions) => {
          for (const { name, untilSeconds } of sessions) ended.set(name, Math.max(untilSeconds, ended.get(name) ?? 0))
          const now = nowSeconds()
          const isCovered = (name: string, until: number) =>
            !name.endsWith("*") && until <= (ended.get(`${name.slice(0, name.lastIndexOf("."))}.*`) ?? 0)
          for (const [name, until] of ended) if (until <= now || isCovered(name, until)) ended.delete(name)
        }
      })
    })
  )
}
