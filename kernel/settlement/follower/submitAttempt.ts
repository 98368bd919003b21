// Sends a recorded attempt and notes what was answered, and in which ledger, which is its value. No answer ends a
// settlement; a lost one least of all. Never fails: an attempt that could not even be noted is sent again by the
// follower.
import { Effect } from "effect"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import { ChannelStore } from "../channels/ChannelStore.ts"
import { Settlements } from "../store/Settlements.ts"
import { Sponsor } from "../sponsor/Sponsor.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** What of an attempt is sent, and noted. */
interface SentAttempt {
  readonly number: number
  readonly envelope: string
  readonly outerHash: string
  readonly recordedLedger: number
}

export const makeSubmitAttempt = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const channels = yield* ChannelStore
  const clock = yield* LedgerClock
  const settlements = yield* Settlements
  const sponsor = yield* Sponsor

  return Effect.fnUntraced(function* (id: string, attempt: SentAttempt) {
    const answer = yield* rpc.send(attempt.envelope, attempt.outerHash)
    const ledger = yield* clock.now.pipe(
      Effect.map(({ sequence }) => sequence),
      Effect.catch(() => Effect.succeed(attempt.recordedLedger))
    )
    if (answer._tag === "Error") {
      // A later bid must beat the one before it tenfold, which does not show the network's current fee.
      if (answer.askedStroops !== undefined && attempt.number === 1) yield* clock.noteAsked(answer.askedStroops)
      // Commits that were lost took numbers with them, and not this channel's alone.
      if (answer.code === "txBadSeq")
        yield* Effect.catch(channels.distrust(ledger), (error) =>
          Effect.logWarning("channels could not be marked for a new read", error)
        )
      if (answer.code === "txInsufficientBalance") yield* sponsor.suspect
    }
    if (answer._tag === "Error" || answer._tag === "Lost") {
      const why = answer._tag === "Error" ? answer.code : answer.message
      yield* Effect.logInfo("a submission was not accepted; the settlement stays open").pipe(
        Effect.annotateLogs({ settlement: id, attempt: attempt.number, answer: answer._tag, why })
      )
    }
    yield* settlements
      .noteSent(id, attempt.number, {
        status: answer._tag,
        code: answer._tag === "Error" ? answer.code : undefined,
        ledger,
        outerHash: attempt.outerHash
      })
      .pipe(
        Effect.catch((error) => Effect.logWarning("a submission could not be recorded; it will be sent again", error))
      )
    return ledger
  }, withSpanIfSampled("ledger.submit"))
})
