// Resolves names that sellers and callers chose, on separate `node:dns` resolvers, for Node and for Deno. They do not
// use the thread pool that `getaddrinfo` and payments' RPC connections share, so a name server that never answers
// delays only its own names. Each question has a resolver, which is cancelled when its caller stops waiting. The
// machine's hosts file comes first.
import { Effect, Semaphore } from "effect"
import { Resolver } from "node:dns/promises"
import { readFile } from "node:fs/promises"
import { OutboundFailed } from "../../kernel/platform/Outbound.ts"

/** Timeout of a name, including the time in the queue. */
const resolveTimeout = "3 seconds"

/** Maximum concurrent questions: in total, and for one zone (the last two labels of a name). */
const questionsMax = 128
const perZoneMax = 4

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

const isLoopbackName = (host: string) => host === "localhost" || host.endsWith(".localhost")

/** The addresses of a name in a hosts file. */
export const readHosts = (text: string, host: string): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    const [address, ...names] = line.replace(/#.*$/, "").trim().toLowerCase().split(/\s+/)
    return address !== undefined && names.includes(host) ? [address] : []
  })

const hostsOf = (host: string) =>
  Effect.promise(() => readFile("/etc/hosts", "utf8").catch(() => "")).pipe(
    Effect.map((text) => readHosts(text, host)),
    Effect.map((found) => (found.length === 0 && isLoopbackName(host) ? ["127.0.0.1"] : found))
  )

type Answer = ReadonlyArray<string> | string

/** Asks for both families in parallel; if neither has an address, returns the code of the first failure. */
const ask = (host: string, servers: ReadonlyArray<string> | undefined) =>
  Effect.callback<ReadonlyArray<string>, OutboundFailed>((resume) => {
    const resolver = new Resolver({ timeout: 1_500, tries: 2 })
    if (servers !== undefined) resolver.setServers([...servers])
    const failing = (error: unknown): Answer => codeOf(error) ?? "EUNKNOWN"
    void Promise.all([resolver.resolve4(host).catch(failing), resolver.resolve6(host).catch(failing)]).then(
      (answers) => {
        const found = answers.flatMap((answer) => (typeof answer === "string" ? [] : answer))
        if (found.length > 0) return resume(Effect.succeed(found))
        const isAuthoritative = answers.every((answer) => answer === "ENOTFOUND")
        const failed = new OutboundFailed({ reason: "unresolved", ...(isAuthoritative ? { isAuthoritative } : {}) })
        resume(Effect.fail(failed))
      }
    )
    return Effect.sync(() => resolver.cancel())
  })

/** `servers`: name servers other than the machine's. */
export const makeResolve = (servers?: ReadonlyArray<string>) => {
  const all = Semaphore.makeUnsafe(questionsMax)
  const zones = new Map<string, { readonly turns: Semaphore.Semaphore; users: number }>()
  const inZone = <A, E>(host: string, asking: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const name = host.replace(/\.$/, "").split(".").slice(-2).join(".")
      const zone = zones.get(name) ?? { turns: Semaphore.makeUnsafe(perZoneMax), users: 0 }
      zones.set(name, zone)
      zone.users += 1
      const leave = Effect.sync(() => {
        zone.users -= 1
        if (zone.users === 0) zones.delete(name)
      })
      return Effect.ensuring(zone.turns.withPermits(1)(all.withPermits(1)(asking)), leave)
    })
  return (host: string): Effect.Effect<ReadonlyArray<string>, OutboundFailed> =>
    Effect.flatMap(hostsOf(host), (found) =>
      found.length > 0 ? Effect.succeed(found) : inZone(host, ask(host, servers))
    ).pipe(
      Effect.timeout(resolveTimeout),
      Effect.catchTag("TimeoutError", () => Effect.fail(new OutboundFailed({ reason: "unresolved" })))
    )
}
