// Which answers a host has taken. A session that makes another request after an answer has left this process has the
// answer: until then the plugin that gave it keeps it. An answer that a later request brings again is not acknowledged
// by that request. Memory of this process: what it forgets is never acknowledged.
import { Context, Effect, Layer } from "effect"

/** One call of a session. */
export interface Exchange {
  /** Runs `effect` once the answer is acknowledged; `key` names what it is of, in the session. */
  readonly note: (key: string, effect: Effect.Effect<void>) => void
  /** At the end of the call: acknowledges what had left before it began, unless this call brings it again. */
  readonly acknowledge: Effect.Effect<void>
}

interface Answer {
  readonly effects: Map<string, Effect.Effect<void>>
  isFlushed: boolean
}

/** Answers of one session that wait at most, and sessions; the oldest is forgotten. */
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
    /** The answer of an exchange has left this process. */
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
          // Of two requests under one id, the second begins anew.
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
