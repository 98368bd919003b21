// Tracks the answers that a host has received. If a session makes another request after an answer was sent, it has
// received the answer; until then the plugin that produced the answer keeps it. A request that repeats an answer does
// not acknowledge it. The state is in memory; an answer that is dropped from it is never acknowledged.
import { Context, Effect, Layer } from "effect"

interface Exchange {
  /** Runs `effect` once the answer is acknowledged; `key` identifies the answer's subject in the session. */
  readonly note: (key: string, effect: Effect.Effect<void>) => void
  /**
   * Called at the end of the call: acknowledges the answers that were sent before it began, except those that this call
   * repeats.
   */
  readonly acknowledge: Effect.Effect<void>
}

interface Answer {
  readonly effects: Map<string, Effect.Effect<void>>
  isFlushed: boolean
}

/** Maximum number of waiting answers per session, and of sessions; the oldest is dropped. */
const answersMax = 256
const sessionsMax = 10_000

const bounded = <A>(map: Map<string, A>, max: number): void => {
  for (const oldest of map.keys()) {
    if (map.size <= max) return
    map.delete(oldest)
  }
}

export class Acknowledgements extends Context.Service<
  Acknowledgements,
  {
    readonly begin: (session: string, exchange: string) => Exchange
    /** The answer of an exchange was sent. */
    readonly flushed: (session: string, exchange: string) => void
  }
>()("tollkeeper/mcp-tools/Acknowledgements") {
  static readonly layer = Layer.sync(Acknowledgements, () => {
    const sessions = new Map<string, Map<string, Answer>>()
    const begin = (session: string, exchange: string): Exchange => {
      const known = (): Map<string, Answer> => sessions.get(session) ?? new Map()
      const left = [...known()].filter(([, { isFlushed }]) => isFlushed)
      return {
        note: (key, effect) => {
          const answers = known()
          for (const { effects } of answers.values()) effects.delete(key)
          const own = answers.get(exchange) ?? { effects: new Map(), isFlushed: false }
          // A second request with the same id starts a new entry.
          answers.delete(exchange)
          answers.set(exchange, { effects: own.effects.set(key, effect), isFlushed: false })
          bounded(answers, answersMax)
          sessions.delete(session)
          sessions.set(session, answers)
          bounded(sessions, sessionsMax)
        },
        acknowledge: Effect.suspend(() => {
          const answers = known()
          const taken = left.flatMap(([id, answer]) => {
            if (answers.get(id) === answer) answers.delete(id)
            return [...answer.effects.values()]
          })
          if (answers.size === 0) sessions.delete(session)
          return Effect.all(taken, { discard: true })
        })
      }
    }
    return Acknowledgements.of({
      begin,
      flushed: (session, exchange) => {
        const answer = sessions.get(session)?.get(exchange)
        if (answer !== undefined) answer.isFlushed = true
      }
    })
  })
}
