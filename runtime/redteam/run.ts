// Plays the cases against one target, one after another, and collects the score card. A case that throws has failed and
// the run continues; attacks without a case for this target are in the card too, each with its reason.
import { attacks } from "./attacks.ts"
import { type Case, Skipped } from "./cases.ts"
import { craftedCases } from "./payments.ts"
import { replayCases } from "./replays.ts"
import { mcpCases, sellerCases } from "./sellers.ts"
import { malformedCases } from "./sockets.ts"
import { openWorld, type Target } from "./target.ts"
import { wordCases } from "./words.ts"

/** The order of play: replays last among the cases that pay, since the buyer's balance leaves in the last one. */
export const cases: ReadonlyArray<Case> = [
  ...malformedCases,
  ...craftedCases,
  ...replayCases,
  ...wordCases,
  ...sellerCases,
  ...mcpCases
]

export type Result = "held" | "failed" | "skipped"

export interface Score {
  readonly attack: number
  readonly name: string
  readonly title: string
  readonly accepts: string
  readonly still: string
  readonly why: string
  readonly source: string
  readonly result: Result
  /** The failure, the reason of a skip, or a note; printable text of one line. */
  readonly detail: string
  readonly millis: number
}

export interface Card {
  readonly url: string
  readonly kind: Target["kind"]
  /** ISO 8601. */
  readonly startedAt: string
  readonly held: number
  readonly failed: number
  readonly skipped: number
  readonly scores: ReadonlyArray<Score>
}

/** Text of the target, without control and direction characters. */
const printable = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}]+/gu, " ")
    .slice(0, 1_000)
    .trim()

interface PlayOptions {
  /** Takes each score as its case ends. */
  readonly onScore?: (score: Score) => void
  /** Chooses among the cases; default all. */
  readonly accepts?: (one: Case) => boolean
}

const unseen = ({ kind }: Target, played: ReadonlySet<number>): ReadonlyArray<Score> =>
  attacks
    .filter(({ number }) => !played.has(number))
    .map(({ number, skipped, source, title, why }) => ({
      attack: number,
      name: title,
      title,
      accepts: "",
      still: "",
      why,
      source,
      result: "skipped",
      detail: skipped ?? `no case of it concerns a ${kind}`,
      millis: 0
    }))

/** Plays every case of the target's kind. Rejects only when the target does not answer at the start. */
export const playCases = async (target: Target, options: PlayOptions = {}): Promise<Card> => {
  const startedAt = new Date().toISOString()
  const world = await openWorld(target)
  const mine = cases.filter((one) => one.on === target.kind && (options.accepts?.(one) ?? true))
  const scores: Array<Score> = []
  for (const { accepts, attack, name, pays, play, still } of mine) {
    const { source, title, why } = attacks[attack - 1]!
    const started = performance.now()
    const ended = (result: Result, detail = ""): Score => {
      const millis = Math.round(performance.now() - started)
      return { attack, name, title, accepts, still, why, source, result, detail: printable(detail), millis }
    }
    const score =
      pays === true && world.money === undefined
        ? ended("skipped", "needs --ledger, a ledger with a friendbot")
        : await play(world).then(
            (note) => ended("held", note ?? ""),
            (error: unknown) =>
              ended(
                error instanceof Skipped ? "skipped" : "failed",
                error instanceof Error ? error.message : String(error)
              )
          )
    scores.push(score)
    options.onScore?.(score)
  }
  const all =
    options.accepts === undefined ? [...scores, ...unseen(target, new Set(mine.map(({ attack }) => attack)))] : scores
  const count = (result: Result) => all.filter((score) => score.result === result).length
  return {
    url: target.url,
    kind: target.kind,
    startedAt,
    held: count("held"),
    failed: count("failed"),
    skipped: count("skipped"),
    scores: all
  }
}
