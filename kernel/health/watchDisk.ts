// Watches the free space of the disk under an embedded database, which is also the local ledger's. Below the reserve
// settling is busy, while all work under way still finds space to finish. Beginning and end are logged once. While
// there is a problem each request reads it again, so it recovers with the next one.
import { Duration, Effect } from "effect"
import { reconciler } from "../actor/Actor.ts"
import { diskProblem, DiskSpace } from "../platform/DiskSpace.ts"

const every = Duration.seconds(10)

/** The disk's problem, by the last reading, and the function that reads it again. The reserve is in bytes. */
export const watchDisk = Effect.fnUntraced(function* (reserveBytes: number) {
  const reading = yield* DiskSpace
  let problem: string | undefined
  const read = Effect.gen(function* () {
    const space = yield* reading
    const before = problem
    problem = space === undefined ? undefined : diskProblem(space, reserveBytes)
    if (before === undefined && problem !== undefined) yield* Effect.logError(`settling is busy: ${problem}`)
    if (before !== undefined && problem === undefined) yield* Effect.logInfo("the disk has enough free space again")
  })
  yield* read
  yield* reconciler({ id: "disk-watch", every, turn: read })
  return {
    problem: () => problem,
    recheck: Effect.suspend(() => (problem === undefined ? Effect.void : read))
  }
})
