// Observers of a chaos run: clients that hold an event stream open at some replica, and reconnect with the id of the
// last received event when the stream ends. Each keeps a copy of the journal by position, and drops the part after the
// position of a `journal.rewound`. At the end the copy equals the journal, and every payment that callers got an answer
// for has been received as settled, by its transaction. A payment that a failover lost and a caller's retry recorded
// again counts by that transaction.
import { Effect, Option } from "effect"
import { decodeCursor } from "../../kernel/facts/FactsEpoch.ts"
import { openEvents, type ServerEvent } from "../support/eventStream.ts"
import { onServer } from "../support/failover.ts"

/** A fact as the journal has it. */
export interface JournalFact {
  readonly position: bigint
  readonly type: string
  readonly subject: string
}

/** The events that streams of all principals must have sent, in the journal's order. */
export const readJournal = (url: string): Effect.Effect<ReadonlyArray<JournalFact>> =>
  onServer(
    url,
    (sql) => sql<JournalFact>`select position, type, subject from kernel_facts
      where principal is not null and position is not null order by position`
  )

export class Observer {
  readonly counts = { streams: 0, events: 0, rewound: 0 }
  readonly #account = new Map<bigint, string>()
  readonly #settled = new Set<string>()
  #last: string | undefined

  /** The id of the last event that it received. */
  get last(): string | undefined {
    return this.#last
  }

  /** Follows streams at any of these, one after another, until it is stopped. */
  readonly follow = (
    urlOf: () => string,
    headers: Readonly<Record<string, string>>,
    isOver: () => boolean
  ): Effect.Effect<void> => {
    const one = Effect.gen({ self: this }, function* () {
      const resuming: Record<string, string> = this.#last === undefined ? {} : { "last-event-id": this.#last }
      const stream = yield* openEvents(`${urlOf()}/settlements/events`, { ...headers, ...resuming })
      if (stream.status !== 200) return
      this.counts.streams += 1
      let read = 0
      while (!isOver()) {
        // Read before the events: what came with the end is not missed.
        const hasEnded = stream.hasEnded()
        for (; read < stream.events.length; read++) this.#receive(stream.events[read]!)
        if (hasEnded) return
        yield* Effect.sleep("20 millis")
      }
    }).pipe(Effect.scoped, Effect.ignoreCause, Effect.andThen(Effect.sleep("200 millis")))
    return Effect.suspend(() => one).pipe(Effect.repeat({ while: () => !isOver() }), Effect.asVoid)
  }

  #receive({ data, event, id }: ServerEvent): void {
    const { position } = Option.getOrThrow(decodeCursor(id))
    this.#last = id
    if (event === "journal.rewound") {
      this.counts.rewound += 1
      for (const known of this.#account.keys()) if (known > position) this.#account.delete(known)
      return
    }
    this.counts.events += 1
    this.#account.set(position, `${event} ${data.id}`)
    if (event === "settlement.settled") this.#settled.add(data.transaction)
  }

  /** Events that it never received, or that differ from the journal. */
  faults(journal: ReadonlyArray<JournalFact>, transactions: ReadonlyArray<string>): ReadonlyArray<string> {
    const expected = new Map(journal.map(({ position, subject, type }) => [position, `${type} ${subject}`]))
    return [
      ...[...expected]
        .filter(([position, fact]) => this.#account.get(position) !== fact)
        .map(([position, fact]) => `never received ${position}, ${fact}`),
      ...[...this.#account.keys()]
        .filter((position) => !expected.has(position))
        .map((position) => `was never informed that ${position} is gone`),
      ...transactions.filter((hash) => !this.#settled.has(hash)).map((hash) => `never received ${hash} as settled`)
    ]
  }
}
