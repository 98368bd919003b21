// The database of a chaos run behind a fixed address: it restarts after a crash, and fails over to a standby that was
// cut off from it, so that the last commits are lost. Replicas keep their address and reconnect.
import { Effect } from "effect"
import { startStandby } from "../support/failover.ts"
import { startPostgres, type TestPostgres } from "../support/postgres.ts"
import { startRelay } from "../support/relay.ts"
import { type JournalFact, readJournal } from "./observers.ts"

/** Same as `startPostgres`. */
const connectionsMax = 200

export interface Servers {
  /** Leads to the current primary. */
  readonly url: string
  readonly restart: () => Promise<void>
  /**
   * `losing` runs while the primary commits transactions that will be lost. Its argument is the time when the first of
   * them may have been committed, by `performance.now`. The failover is complete when the promise resolves.
   */
  readonly failOver: (losing: (from: number) => Promise<void>) => Promise<void>
  readonly journal: () => Promise<ReadonlyArray<JournalFact>>
  readonly stop: () => Promise<void>
}

const portOf = (server: TestPostgres): number => Number(new URL(server.url).port)

export const startServers = async (): Promise<Servers> => {
  let primary = await startPostgres()
  if (primary.restart === undefined) throw new Error("the chaos run needs a PostgreSQL of its own")
  const relay = await startRelay(portOf(primary))
  const url = new URL(primary.url)
  url.port = String(relay.port)
  return {
    url: url.href,
    restart: () => primary.restart!(),
    failOver: async (losing) => {
      const standby = await Effect.runPromise(startStandby(primary.url, connectionsMax))
      // On a loaded machine, the standby may be cut off long before we notice.
      const from = performance.now()
      await Effect.runPromise(standby.cutOff)
      await losing(from)
      relay.cut()
      await primary.stop()
      await Effect.runPromise(standby.promote)
      primary = standby.server
      relay.connectTo(portOf(primary))
    },
    journal: () => Effect.runPromise(readJournal(primary.url)),
    stop: async () => {
      await relay.close()
      await primary.stop()
    }
  }
}
