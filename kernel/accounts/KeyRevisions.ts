// Rereading and revocation over all replicas. An operator changes the sources (the files behind the variables) and asks
// one replica to read them again. It applies them, and records a revision with the keys that it dropped. Every replica
// sees a new revision within two seconds. From then on it refuses the revoked keys, even if its sources still list
// them, ends their sessions, and reads its sources again. Only the replica that was asked revokes or reinstates, so a
// file that arrives late on another host changes nothing for the rest. A key that a later reread adds is reinstated. A
// start reads the revoked keys before it serves. A process's memory is a cache of these rows: no request reads them. A
// removal that cannot be recorded holds here, is reported, and is recorded by a later turn.
import { Context, Effect, Layer, Schema, type Scope, Semaphore } from "effect"
import { Hex } from "effect/encoding"
import type { SqlError } from "effect/sql"
import { reconciler } from "../actor/Actor.ts"
import { Server } from "../config/Server.ts"
import { SettingsRefused } from "../config/Settings.ts"
import { Database } from "../database/Database.ts"
import { Health } from "../health/Health.ts"
import { Keys, type KeyChanges, type NamedKey } from "../http/Keys.ts"
import { Crypto } from "../platform/Crypto.ts"
import { Host } from "../platform/Host.ts"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import { allParts, type KeyChange, makeKeyJournal, type ReplicaKeys, type RereadScope } from "./KeyJournal.ts"

// The state of a replica after a reread, for an operator: whether it applied the reread, and how its keys differ from
// those of the replica that was asked. Pure.

/** A name without its digest, which only serves comparison. */
const shown = (name: string): string => name.slice(0, name.lastIndexOf(" "))

const listed = (names: ReadonlyArray<string>): string => [...new Set(names.map(shown))].join(", ")

/** The reason why a replica is behind the replica that was asked; undefined if it is not behind. */
const replicaFault = (asked: ReplicaKeys, other: ReplicaKeys): string | undefined => {
  if (other.revision < asked.revision) return "has not reread its sources"
  if (other.fault !== null) return `kept its former keys: ${other.fault}`
  const lacked = asked.inForce.filter((name) => !other.inForce.includes(name))
  const extra = other.inForce.filter((name) => !asked.inForce.includes(name))
  const faults = [
    ...(lacked.length === 0 ? [] : [`its sources lack ${listed(lacked)}`]),
    ...(extra.length === 0 ? [] : [`it accepts ${listed(extra)}, which the sources here do not list`]),
    ...(other.refused.length === 0 ? [] : [`its sources still list ${listed(other.refused)}, revoked and refused`])
  ]
  return faults.length === 0 ? undefined : faults.join("; ")
}

/** Interval between two polls for rereads of other replicas. */
const pollEvery = "2 seconds"
const announceMillis = 10_000
/** How long a requested reread waits for the other replicas. */
const waitMillis = 10_000
const replicasPollEvery = "200 millis"
/** Hex digits of a digest that distinguish the keys of two replicas. */
const markLength = 12

/** Secrets of a plugin that a reread reads together with the keys. */
interface RereadPart {
  readonly name: string
  /** Reads again and returns the changes, for people. On an error nothing changes. */
  readonly reread: (scope: RereadScope) => Effect.Effect<ReadonlyArray<string>, SettingsRefused>
  /** Names of the keys in force, each with a digest, to compare replicas. */
  readonly marks: () => ReadonlyArray<string>
}

export interface RereadReplica {
  readonly replica: string
  readonly changes: string
  /** The reason why it is behind; undefined if it is not. */
  readonly fault: string | undefined
}

/** A replica is behind, or the reread could not be recorded. */
export class ReplicasBehind extends Schema.TaggedError<ReplicasBehind>()("ReplicasBehind", {
  message: Schema.String
}) {}

export interface RereadOptions extends Partial<RereadScope> {
  /** Whether the reread reinstates revoked keys that the sources here list. */
  readonly reinstates?: boolean
}

const labelOf = ({ principal, role }: NamedKey): string => (role === "operator" ? `operator ${principal}` : principal)
const markOf = (key: NamedKey): string => `${labelOf(key)} ${key.digest.slice(0, markLength)}`

/** "removed shop, added desk", by label: a label with a new secret is renewed. */
const wordsOf = ({ added, removed }: KeyChanges): ReadonlyArray<string> => {
  const [came, went] = [new Set(added.map(labelOf)), new Set(removed.map(labelOf))]
  return [
    ...[...went].map((label) => (came.has(label) ? `renewed ${label}` : `removed ${label}`)),
    ...[...came].filter((label) => !went.has(label)).map((label) => `added ${label}`)
  ]
}

const unchanged = "unchanged"

interface Sources {
  readonly keys: Keys["Service"]
  readonly parts: Set<RereadPart>
  readonly takeUp: (
    scopes: ReadonlyArray<RereadScope>
  ) => Effect.Effect<KeyChanges & { readonly refusal: SettingsRefused | undefined }>
  readonly status: (revision: number) => Omit<ReplicaKeys, "replica">
}

const makeSources = Effect.gen(function* () {
  const keys = yield* Keys
  const parts = new Set<RereadPart>()
  const own: ReplicaKeys = { replica: "", revision: 0, changes: unchanged, fault: null, inForce: [], refused: [] }
  let last: Pick<ReplicaKeys, "changes" | "fault"> = own

  const takeUp = Effect.fnUntraced(function* (scopes: ReadonlyArray<RereadScope>) {
    const words: Array<string> = []
    const refusals: Array<SettingsRefused> = []
    const note = (refused: SettingsRefused) => Effect.sync(() => void refusals.push(refused))
    let changes: KeyChanges = { added: [], removed: [] }
    if (scopes.some(({ part }) => part === allParts))
      yield* Effect.matchEffect(keys.reread, {
        onFailure: note,
        onSuccess: (found) => Effect.sync(() => void words.push(...wordsOf((changes = found))))
      })
    for (const scope of scopes)
      for (const part of parts)
        if (scope.part === allParts || scope.part === part.name)
          yield* Effect.matchEffect(part.reread(scope), {
            onFailure: note,
            onSuccess: (found) => Effect.sync(() => void words.push(...found))
          })
    last = {
      changes: words.length === 0 ? unchanged : words.join(", "),
      fault: refusals.length === 0 ? null : refusals.map(({ message, path }) => `${path}: ${message}`).join("; ")
    }
    return { ...changes, refusal: refusals[0] }
  })

  const status = (revision: number): Omit<ReplicaKeys, "replica"> => {
    const named = keys.named()
    return {
      ...last,
      revision,
      inForce: [
        ...named.filter(({ isRevoked }) => !isRevoked).map(markOf),
        ...[...parts].flatMap((part) => part.marks())
      ],
      refused: named.filter(({ isRevoked }) => isRevoked).map(markOf)
    }
  }
  const sources: Sources = { keys, parts, takeUp, status }
  return sources
})

/** The applied revision of this replica, and its changes without a record yet. */
const makeFollower = Effect.fnUntraced(function* (replica: string, { keys, status, takeUp }: Sources) {
  const journal = yield* makeKeyJournal(replica)
  const turns = yield* Semaphore.make(1)
  const unrecorded = new Map<string, KeyChange>()
  let revision = 0
  let announcedAt = -Infinity

  const announce = Effect.gen(function* () {
    yield* journal.announce(status(revision))
    announcedAt = yield* monotonicMillis
  })

  const readRevoked = Effect.map(journal.revoked, keys.setRevoked)

  const record = (scope: RereadScope) =>
    Effect.gen(function* () {
      const changes = [...unrecorded.values()]
      const recorded = yield* journal.record(changes, scope)
      unrecorded.clear()
      // The next turn applies revisions of other replicas in between.
      if (recorded === revision + 1) revision = recorded
      yield* readRevoked
      yield* announce
      return recorded
    })

  const start = Effect.gen(function* () {
    revision = yield* journal.revision
    yield* readRevoked
  })

  const follow = Effect.gen(function* () {
    const newest = yield* journal.revision
    if (newest !== revision) {
      yield* readRevoked
      yield* takeUp(yield* journal.since(revision))
      revision = newest
      const { changes, fault } = status(revision)
      yield* fault === null
        ? Effect.logInfo(`reread the keys, because another replica was asked to: ${changes}`)
        : Effect.logWarning(`could not reread the keys, which another replica was asked to do: ${fault}`)
      return yield* announce
    }
    if (unrecorded.size > 0) return yield* Effect.asVoid(record({ part: allParts, name: "", withoutOverlap: false }))
    if ((yield* monotonicMillis) - announcedAt >= announceMillis) yield* announce
  })

  /** Applies the sources here, then records the resulting change. */
  const ask = Effect.fnUntraced(function* (scope: RereadScope, reinstates: boolean) {
    const taken = yield* takeUp([scope])
    for (const key of taken.removed) unrecorded.set(`${key.role} ${key.digest}`, { ...key, isRevoked: true })
    const again = reinstates ? keys.named().filter(({ isRevoked }) => isRevoked) : []
    for (const key of [...taken.added, ...again])
      unrecorded.set(`${key.role} ${key.digest}`, { ...key, isRevoked: false })
    return { ...taken, revision: yield* record(scope) }
  })

  return {
    journal,
    start: turns.withPermits(1)(start),
    turn: turns.withPermits(1)(follow),
    ask: (scope: RereadScope, reinstates: boolean) => turns.withPermits(1)(ask(scope, reinstates)),
    live: journal.live
  }
})

const unrecordedOf = (error: SqlError.SqlError) =>
  new ReplicasBehind({
    message:
      `the keys are in force only on this replica: the database does not answer (${error.message}); ` +
      "this replica retries, and you can retry too"
  })

export class KeyRevisions extends Context.Service<
  KeyRevisions,
  {
    /**
     * Reads the sources of this replica again, then waits for every replica. The result names each replica, including
     * replicas that are behind.
     */
    readonly reread: (
      options?: RereadOptions
    ) => Effect.Effect<ReadonlyArray<RereadReplica>, SettingsRefused | ReplicasBehind>
    /** Registers secrets of a plugin for rereads, while the Scope lives. */
    readonly register: (part: RereadPart) => Effect.Effect<void, never, Scope.Scope>
  }
>()("tollkeeper/accounts/KeyRevisions") {
  static readonly layer = Layer.effect(
    KeyRevisions,
    Effect.gen(function* () {
      const host = (yield* Server).instance ?? (yield* Host).name
      const replica = `${host}/${Hex.encode((yield* Crypto).randomBytes(4))}`
      const sources = yield* makeSources
      const follower = yield* makeFollower(replica, sources)
      yield* follower.start
      yield* Effect.addFinalizer(() => follower.journal.leave)

      /** The replicas, once all have read the revision or the wait has ended. */
      const replicasAt = Effect.fnUntraced(function* (revision: number) {
        const end = (yield* monotonicMillis) + waitMillis
        while (true) {
          const replicas = yield* follower.live
          if (replicas.every((one) => one.revision >= revision) || (yield* monotonicMillis) > end) return replicas
          yield* Effect.sleep(replicasPollEvery)
        }
      })

      const reread: KeyRevisions["Service"]["reread"] = Effect.fn("KeyRevisions.reread")(function* (options = {}) {
        const { withoutOverlap = false, name = "", part = allParts, reinstates = false } = options
        const taken = yield* Effect.mapError(follower.ask({ part, name, withoutOverlap }, reinstates), unrecordedOf)
        if (taken.refusal !== undefined)
          return yield* new SettingsRefused({
            path: taken.refusal.path,
            message: `${taken.refusal.message}; nothing changed: the previous keys stay in force`
          })
        const replicas = yield* Effect.mapError(replicasAt(taken.revision), unrecordedOf)
        const own: ReplicaKeys = { ...sources.status(taken.revision), replica }
        return [own, ...replicas.filter((one) => one.replica !== replica)].map((one) => ({
          replica: one.replica,
          changes: one.changes,
          fault: replicaFault(own, one)
        }))
      })

      yield* (yield* Health).register(
        "keys",
        Effect.sync(() => {
          const { fault, refused } = sources.status(0)
          return fault === null && refused.length === 0
            ? { state: "ready" as const }
            : { state: "degraded" as const, detail: fault ?? `${refused.length} listed keys are revoked, and refused` }
        })
      )
      // Only this process can use an embedded database.
      if ((yield* Database).kind === "server")
        yield* reconciler({ id: "key-revisions", every: pollEvery, turn: follower.turn })

      return KeyRevisions.of({
        reread,
        register: (part) =>
          Effect.acquireRelease(
            Effect.sync(() => void sources.parts.add(part)),
            () => Effect.sync(() => void sources.parts.delete(part))
          )
      })
    })
  )
}

/** Fails if a replica is behind after a reread; the error names the replica. */
export const requireAll = (replicas: ReadonlyArray<RereadReplica>): Effect.Effect<void, ReplicasBehind> => {
  const behind = replicas.flatMap(({ fault, replica }) =>
    fault === undefined ? [] : [`${replica} is behind: ${fault}`]
  )
  return behind.length === 0 ? Effect.void : Effect.fail(new ReplicasBehind({ message: behind.join("; ") }))
}

export const linesOf = (replicas: ReadonlyArray<RereadReplica>): ReadonlyArray<string> =>
  replicas.map(
    ({ changes, fault, replica }) => `${replica}: ${changes}${fault === undefined ? "" : `; BEHIND: ${fault}`}`
  )
