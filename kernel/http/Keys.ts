// Bearer keys of callers and operators. A key is `secret`, `label:secret` or `label(until=2027-01-31
// analytics:all):secret`, with the day it ends and scopes of its label. Keys are separated by commas or line ends. They
// are in the environment variable that the settings name, or in the file of its `_FILE` variant, which can change while
// the process runs. Comparison is of hashes, in constant time, over all keys. No key is kept, logged or shown: a
// principal is its label, or the first 16 hex of the secret's sha256. Without any caller key the facilitator is
// keyless. A key that another replica revoked is no longer valid, even while the file here lists it
// (`accounts/KeyRevisions.ts`).
import { Clock, Context, Effect, Layer, Option, Redacted } from "effect"
import { Hex } from "effect/encoding"
import { Server } from "../config/Server.ts"
import { Settings, SettingsRefused } from "../config/Settings.ts"
import { Crypto } from "../platform/Crypto.ts"

/** The role of a key: callers that pay, or operators. */
export type Role = "caller" | "operator"

/** A key without its secret. */
export interface NamedKey {
  readonly role: Role
  readonly principal: string
  /** Derived from the secret's hash. The hash itself signs sessions, so the digest cannot open one. */
  readonly digest: string
}

/** Rights of a key beyond its own payments: `analytics:all` reads the payments of every key. */
type KeyScope = "analytics:all"

interface Attributes {
  /** The key is valid before this time; absent: without an end. */
  readonly untilMillis?: number
  readonly scopes: ReadonlySet<KeyScope>
}

interface Key extends NamedKey, Attributes {
  readonly hash: Uint8Array
}

export interface KeyChanges {
  readonly added: ReadonlyArray<NamedKey>
  readonly removed: ReadonlyArray<NamedKey>
}

/** Variables that no setting has to name; unset, they mean that no key is required. */
const unsetVariables = new Set(["FACILITATOR_API_KEYS", "OPERATOR_API_KEYS", "TOOLS_API_KEYS"])
const secretLengthMin = 16
/** Characters that every client can send as a bearer key: visible ASCII. */
const sendable = /^[!-~]+$/
const labelled = /^([a-z][a-z0-9-]{0,31})(?:\(([^()]*)\))?:(.+)$/

/** Attributes in parentheses behind a label; undefined if one is unknown or not a date. */
const readAttributes = (text: string): Attributes | undefined => {
  let untilMillis: number | undefined
  const scopes = new Set<KeyScope>()
  for (const word of text.split(/\s+/).filter((word) => word !== "")) {
    const until = /^until=(\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z)?)$/.exec(word)?.[1]
    if (until !== undefined && !Number.isNaN(Date.parse(until))) untilMillis = Date.parse(until)
    else if (word === "analytics:all") scopes.add(word)
    else return undefined
  }
  return untilMillis === undefined ? { scopes } : { untilMillis, scopes }
}

const hashOf = (crypto: Crypto["Service"], text: string) => crypto.sha256(new TextEncoder().encode(text))

const principalsOf = (keys: ReadonlyArray<Key>) => [...new Set(keys.map(({ principal }) => principal))]

const idOf = ({ digest, role }: Pick<NamedKey, "role" | "digest">): string => `${role} ${digest}`

const nameOf = ({ digest, principal, role }: NamedKey): NamedKey => ({ role, principal, digest })

const without = (keys: ReadonlyArray<Key>, others: ReadonlyArray<Key>): ReadonlyArray<NamedKey> => {
  const ids = new Set(others.map(idOf))
  return keys.filter((key) => !ids.has(idOf(key))).map(nameOf)
}

/** A process that was started for known callers, and listens for them, must not open to all because a file is empty. */
const requireSome = (path: string, keys: ReadonlyArray<Key>, next: ReadonlyArray<Key>, what: string) =>
  keys.length > 0 && next.length === 0
    ? Effect.fail(new SettingsRefused({ path, message: `no key is left; ${what} needs a restart` }))
    : Effect.void

/** The keys of one variable; an issue names the variable and the entry's position, never its text. */
const readKeys = Effect.fnUntraced(function* (
  settings: Settings["Service"],
  crypto: Crypto["Service"],
  role: Role,
  variable: string
): Effect.fn.Return<ReadonlyArray<Key>, SettingsRefused> {
  const listed = yield* Effect.try({
    try: () => settings.secret(variable),
    catch: (error) =>
      new SettingsRefused({ path: variable, message: error instanceof Error ? error.message : "it cannot be read" })
  })
  const entries = Option.match(listed, {
    onNone: () => [],
    onSome: (list) =>
      Redacted.value(list)
        .split(/[,\n]/)
        .map((entry) => entry.trim())
        .filter((entry) => entry !== "")
  })
  // An operator meant to list keys: without any, the facilitator would serve every caller. The setting is not quoted,
  // because it may be a key in the wrong place.
  if (Option.isNone(listed) && !unsetVariables.has(variable))
    return yield* new SettingsRefused({
      path: role === "caller" ? "api_keys_env" : "operator_keys_env",
      message: "the variable that it names is not set; set it to the keys, or leave the setting out"
    })
  if (Option.isSome(listed) && entries.length === 0)
    return yield* new SettingsRefused({ path: variable, message: "it lists no key; write one, or unset it" })
  const keys: Array<Key> = []
  for (const [index, entry] of entries.entries()) {
    const [, label, attributes = "", rest] = labelled.exec(entry) ?? []
    const secret = rest ?? entry
    const read = readAttributes(attributes)
    if (read === undefined) {
      return yield* new SettingsRefused({
        path: variable,
        message: `entry ${index + 1} has an attribute other than until=YYYY-MM-DD and analytics:all`
      })
    }
    // Such as attributes with a comma between them: each part would be a key that can be guessed.
    if (rest === undefined && /^[a-z][a-z0-9-]{0,31}\(/.test(entry)) {
      return yield* new SettingsRefused({
        path: variable,
        message: `entry ${index + 1} is not label(attribute attribute):secret, without a comma`
      })
    }
    if (secret.length < secretLengthMin) {
      return yield* new SettingsRefused({
        path: variable,
        message: `entry ${index + 1} is shorter than ${secretLengthMin} characters`
      })
    }
    if (!sendable.test(secret)) {
      return yield* new SettingsRefused({
        path: variable,
        message: `entry ${index + 1} has a space, or a character that is not ASCII: no request could send it`
      })
    }
    const hash = hashOf(crypto, secret)
    const digest = Hex.encode(hashOf(crypto, `tollkeeper key ${Hex.encode(hash)}`))
    keys.push({ role, principal: label ?? Hex.encode(hash).slice(0, 16), hash, digest, ...read })
  }
  return keys
})

export class Keys extends Context.Service<
  Keys,
  {
    /** Whether any caller key is configured. */
    readonly keyed: () => boolean
    readonly operatorKeyed: () => boolean
    /**
     * Whether callers with this label read everyone's payments: it has the scope, or it is the only label. A revoked or
     * ended key still counts as a label while a source lists it.
     */
    readonly seesAll: (label: string) => boolean
    /** The principal of a bearer key; None when it is not listed. */
    readonly caller: (bearer: string) => Option.Option<string>
    readonly operator: (bearer: string) => Option.Option<string>
    /** A mark of a listed key, of either role: its hash in hex; undefined when it is not listed. */
    readonly markOf: (bearer: string) => string | undefined
    /**
     * Signatures of a message by each key that is listed under this principal: HMAC-SHA-256 under the secret's hash.
     */
    readonly proofs: (role: Role, principal: string, message: Uint8Array) => ReadonlyArray<Uint8Array>
    /** Keys in force by principal, without any secret. */
    readonly listed: () => { readonly callers: ReadonlyArray<string>; readonly operators: ReadonlyArray<string> }
    /** Reads the variables again; on an error the keys stay unchanged. */
    readonly reread: Effect.Effect<KeyChanges, SettingsRefused>
    /** Keys of the sources, revoked or not. */
    readonly named: () => ReadonlyArray<NamedKey & { readonly isRevoked: boolean }>
    /** From now on exactly these keys are revoked. */
    readonly setRevoked: (revoked: ReadonlyArray<Pick<NamedKey, "role" | "digest">>) => void
  }
>()("tollkeeper/http/Keys") {
  static readonly layer: Layer.Layer<Keys, SettingsRefused, Settings | Server | Crypto> = Layer.effect(
    Keys,
    Effect.gen(function* () {
      const settings = yield* Settings
      const server = yield* Server
      const crypto = yield* Crypto
      const readAll = Effect.all([
        readKeys(settings, crypto, "caller", server.apiKeysEnv),
        readKeys(settings, crypto, "operator", server.operatorKeysEnv)
      ])
      let revoked: ReadonlySet<string> = new Set()
      let [allCallers, allOperators] = yield* readAll
      /** Without the revoked keys. */
      let [callers, operators] = [allCallers, allOperators]
      const clock = yield* Clock.Clock
      const isRevoked = (key: NamedKey) => revoked.has(idOf(key))
      const inForce = ({ untilMillis = Infinity }: Key) => clock.currentTimeMillisUnsafe() < untilMillis
      const takeUp = () => {
        callers = allCallers.filter((key) => !isRevoked(key))
        operators = allOperators.filter((key) => !isRevoked(key))
      }

      const find = (keys: ReadonlyArray<Key>, bearer: string): Key | undefined => {
        const hash = hashOf(crypto, bearer)
        let found: Key | undefined
        // All keys are compared, so that the time taken does not reveal the closest one.
        for (const key of keys) if (crypto.timingSafeEqual(key.hash, hash) && inForce(key)) found = key
        return found
      }
      const labels = (keys: ReadonlyArray<Key>) => principalsOf(keys.filter(inForce))
      const match = (keys: ReadonlyArray<Key>, bearer: string): Option.Option<string> =>
        Option.map(Option.fromUndefinedOr(find(keys, bearer)), ({ principal }) => principal)

      return Keys.of({
        // A facilitator must not open to all when its last key is revoked.
        keyed: () => allCallers.length > 0,
        listed: () => ({ callers: labels(callers), operators: labels(operators) }),
        operatorKeyed: () => allOperators.length > 0,
        seesAll: (label) =>
          principalsOf(allCallers).length === 1 ||
          callers.some((key) => key.principal === label && inForce(key) && key.scopes.has("analytics:all")),
        caller: (bearer) => match(callers, bearer),
        operator: (bearer) => match(operators, bearer),
        markOf: (bearer) => {
          const found = find([...callers, ...operators], bearer)
          return found === undefined ? undefined : Hex.encode(found.hash)
        },
        proofs: (role, principal, message) =>
          (role === "operator" ? operators : callers)
            .filter((key) => key.principal === principal && inForce(key))
            .map(({ hash }) => crypto.hmacSha256(hash, message)),
        named: () => [...allCallers, ...allOperators].map((key) => ({ ...nameOf(key), isRevoked: isRevoked(key) })),
        setRevoked: (keys) => {
          revoked = new Set(keys.map(idOf))
          takeUp()
        },
        reread: Effect.gen(function* () {
          const [nextCallers, nextOperators] = yield* readAll
          yield* requireSome(server.apiKeysEnv, allCallers, nextCallers, "a keyless facilitator")
          yield* requireSome(server.operatorKeysEnv, allOperators, nextOperators, "a facilitator without operators")
          const [before, next] = [
            [...allCallers, ...allOperators],
            [...nextCallers, ...nextOperators]
          ]
          ;[allCallers, allOperators] = [nextCallers, nextOperators]
          takeUp()
          return { added: without(next, before), removed: without(before, next) }
        })
      })
    })
  )
}

/** The token of an `Authorization: Bearer` header; None for any other header, and for two that were joined into one. */
export const bearerOf = (header: string | undefined): Option.Option<string> => {
  const match = /^Bearer ([^\s,]+)$/i.exec(header ?? "")
  return Option.fromUndefinedOr(match?.[1])
}
