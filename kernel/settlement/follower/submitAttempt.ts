// Sends a recorded attempt, records the answer and its ledger, and returns that ledger. No answer ends a settlement,
// least of all a lost one. Never fails: if the answer could not be recorded, the follower sends the attempt again.
import { Effect } from "effect"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import { ChannelStore } from "../channels/ChannelStore.ts"
import { Settlements } from "../store/Settlements.ts"
import { Sponsor } from "../sponsor/Sponsor.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** The fields of an attempt for sending and recording it. */
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
      // A later bid must be ten times the previous bid, so its refusal does not show the network's current fee.
      if (answer.askedStroops !== undefined && attempt.number === 1) yield* clock.noteAsked(answer.askedStroops)
      // Lost commits of the database also lost sequence numbers, not only this channel's.
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
