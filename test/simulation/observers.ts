// Observers of a run: clients of the product's own streams of settlements (`EventStreams.ts`), over the simulated
// store. Each keeps a copy of the journal as a client would: it reconnects with the id of the last event that it read,
// to any running replica, and drops its copy after a position if an event `journal.rewound` asks for it. At the end the
// copy must equal the journal: an observer reads every fact, or is informed.
import { Effect, Layer, Option, Stream } from "effect"
import { SqlError } from "effect/sql"
import { Events } from "../../kernel/config/Events.ts"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { decodeCursor, type JournalCursor } from "../../kernel/facts/FactsEpoch.ts"
import { EventStreams } from "../../kernel/payment/http/EventStreams.ts"
import { SettlementEvents } from "../../kernel/settlement/operators/SettlementEvents.ts"
import { makeRandom, type Random } from "./random.ts"
import type { Replica } from "./Replica.ts"
import type { World } from "./World.ts"

/** How often a stream polls the simulated journal. */
const pollMillis = 4_000
/** How long we wait for observers at the end. */
export const observingMillis = 60_000

const connectionLost = () =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause: new Error("the connection is gone") } as never)
  } as never)

/** A separate random source for the streams, so that observers do not change the run. */
const randomOf = (world: World): Random => {
  const random = randoms.get(world) ?? makeRandom(world.seed ^ 0x5bd1e995)
  randoms.set(world, random)
  return random
}
const randoms = new WeakMap<World, Random>()

/** The journal from the view of a replica: calls take time, and may fail. */
const simulatedEvents = (world: World, replica: Replica) => {
  const { store } = world
  const random = randomOf(world)
  const reading = <A>(read: () => A): Effect.Effect<A, SqlError.SqlError> =>
    Effect.andThen(
      Effect.suspend(() => Effect.sleep(random.int(1, 30))),
      Effect.suspend((): Effect.Effect<A, SqlError.SqlError> => {
        if (!replica.isAlive) return Effect.never
        return random.chance(0.02) ? Effect.fail(connectionLost()) : Effect.succeed(read())
      })
    )
  return SettlementEvents.of({
    after: ({ principal }, cursor, limit) => reading(() => store.eventsAfter(principal, cursor, limit)),
    before: () => reading(() => ({ ...store.journalEnd(), position: 0n })),
    end: reading(() => store.journalEnd()),
    attend: () => Effect.succeed(Effect.sleep(pollMillis))
  })
}

/** The product's streams over a replica's journal; the service that closes them comes from outside. */
export const streamsLayer = (world: World, replica: Replica) =>
  EventStreams.layer.pipe(
    Layer.provide(
      Layer.mergeAll(
        Layer.sync(SettlementEvents, () => simulatedEvents(world, replica)),
        Layer.succeed(Events, {
          streamsPerPrincipalMax: 10,
          streamsMax: 10,
          heartbeatMillis: 15_000,
          retainedMillis: 0
        }),
        Layer.succeed(WireVocabulary, { dialects: ["ledger"], stellarPendingReason: "settlement_pending" })
      )
    )
  )

/** Follows streams of a running replica, and reports when that ended, or that there is none. */
export type Ask = (
  random: Random,
  read: (streams: EventStreams["Service"]) => Effect.Effect<void>,
  ended: () => void
) => void

/** One client, for one principal or for all. */
class Observer {
  readonly principal: string | undefined
  /** The facts that it has read, by position. */
  readonly account = new Map<bigint, string>()
  #last: JournalCursor | undefined
  readonly #world: World

  constructor(world: World, principal: string | undefined) {
    this.#world = world
    this.principal = principal
  }

  /** Reads one stream until it ends, or until the client leaves. */
  readonly follow = (streams: EventStreams["Service"], source: string): Effect.Effect<void> => {
    const whose = this.principal === undefined ? {} : { principal: this.principal }
    const dataOf = (event: { readonly settlement: { readonly id: string } }) => event.settlement.id
    const follower = { whose, source, isListed: () => true, dataOf }
    const leaving = randomOf(this.#world).int(500, 40_000)
    return Effect.suspend(() => streams.begin(whose, this.#last)).pipe(
      Effect.flatMap((from) => Stream.runForEach(streams.follow(follower, from), (chunk) => this.#read(chunk))),
      Effect.timeoutOption(leaving),
      Effect.ignore
    )
  }

  #read(chunk: Uint8Array): Effect.Effect<void> {
    return Effect.sync(() => {
      const [, id, event, data] = /^id: (.+)\nevent: (.+)\ndata: (.+)\n\n$/.exec(new TextDecoder().decode(chunk)) ?? []
      if (id === undefined) return
      const cursor = Option.getOrThrow(decodeCursor(id))
      this.#last = cursor
      if (event === "journal.rewound") {
        this.#world.coverage.count("journal rewound")
        for (const position of this.account.keys()) if (position > cursor.position) this.account.delete(position)
      } else this.account.set(cursor.position, `${event} ${JSON.parse(data!)}`)
    })
  }

  /** The current journal, as this observer should have read it. */
  get expected(): ReadonlyMap<bigint, string> {
    return new Map(
      this.#world.store
        .eventsAfter(this.principal, { position: 0n, epoch: 0n }, Infinity)
        .events.map(({ position, settlement, type }) => [position, `${type} ${settlement.id}`])
    )
  }

  get isComplete(): boolean {
    const { expected } = this
    return this.account.size >= expected.size && [...expected.keys()].every((position) => this.account.has(position))
  }

  /** Differences between its copy and the journal. */
  get violations(): ReadonlyArray<string> {
    const { expected } = this
    const name = `the observer of ${this.principal ?? "everything"}`
    const missed = [...expected].filter(([position, fact]) => this.account.get(position) !== fact)
    const undone = [...this.account.keys()].filter((position) => !expected.has(position))
    return [
      ...missed.map(([position, fact]) => `${name} never read ${position}, ${fact}`),
      ...undone.map((position) => `${name} was never informed that ${position} is gone`)
    ]
  }
}

/** All observers of a run. They reconnect to any replica until the run ends. */
export class Observers {
  readonly #observers: ReadonlyArray<Observer>

  constructor(world: World, principals: ReadonlyArray<string | undefined>, ask: Ask) {
    this.#observers = principals.map((principal) => new Observer(world, principal))
    const random = randomOf(world)
    for (const [number, observer] of this.#observers.entries()) {
      const again = () =>
        world.time.after(random.int(100, 9_000), () =>
          ask(random, (streams) => observer.follow(streams, `observer-${number}`), again)
        )
      again()
    }
  }

  get areComplete(): boolean {
    return this.#observers.every(({ isComplete }) => isComplete)
  }

  get violations(): ReadonlyArray<string> {
    return this.#observers.flatMap(({ violations }) => violations.slice(0, 2))
  }
}
