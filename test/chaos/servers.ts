// The database of a chaos run behind a fixed address: it restarts after a crash, and fails over to a standby that was
// cut off from it, so that the last commits are lost. Replicas keep their address and reconnect.
import { Effect } from "effect"
import { startStandby } from "../support/failover.ts"
import { startPostgres, type TestPostgres } from "../support/postgres.ts"
import { startRelay } from "../support/relay.ts"
import { type JournalFact, readJournal } from "./observers.ts"

/** As many as `startPostgres` admits. */
const connectionsMax = 200

export interface Servers {
  /** Leads to the server that is the primary now. */
  readonly url: string
  readonly restart: () => Promise<void>
  /**
   * `losing` runs while the primary commits what will be lost, and is given when the first of that may have been
   * committed, by `performance.now`; the failover is complete when the promise resolves.
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
      // The standby may be cut off long before that is known, on a loaded machine.
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
