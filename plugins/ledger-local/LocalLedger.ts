// The embedded ledger as a service: JSON-RPC without sockets, manual closing, funding, and injected faults. Time comes
// from Effect's Clock, so a test controls it. With a folder the ledger survives the process; without one it lives in
// memory. The implementation is loaded when the first ledger is opened, so a process without a ledger does not load the
// contract engine.
import { Context, Effect, type FileSystem, Layer, type Path } from "effect"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import type { ForkRefused } from "./node/fork/ForkedEntries.ts"
import type { Upstream, UpstreamFailed } from "./node/fork/Upstream.ts"
import type { JournalRefused } from "./node/LedgerJournal.ts"
import type { LocalLedgerOptions, OpenedLedger } from "./openLocalLedger.ts"

export type { FundOptions, FundResult, LocalLedgerOptions } from "./openLocalLedger.ts"
export type { Unanswered } from "./rpc/answerRequest.ts"

const opening = Effect.promise(() => import("./openLocalLedger.ts"))

export class LocalLedger extends Context.Service<LocalLedger, OpenedLedger>()("tollkeeper/ledger-local/LocalLedger") {
  static readonly layer = (
    options: LocalLedgerOptions,
    folder: string
  ): Layer.Layer<LocalLedger, ForkRefused | JournalRefused, Crypto | FileSystem.FileSystem | Path.Path> =>
    Layer.effect(
      LocalLedger,
      Effect.flatMap(opening, ({ openLedger }) => openLedger(options, folder)).pipe(
        Effect.catchTags({ PlatformError: Effect.die, UpstreamFailed: Effect.die })
      )
    )

  /** A ledger that continues from another network's state; in `folder`, or in memory. */
  static readonly layerFork = (
    options: LocalLedgerOptions,
    folder: string | undefined
  ): Layer.Layer<
    LocalLedger,
    ForkRefused | JournalRefused | UpstreamFailed,
    Crypto | FileSystem.FileSystem | Path.Path | Upstream
  > =>
    Layer.effect(
      LocalLedger,
      Effect.flatMap(opening, ({ openFork }) => openFork(options, folder))
    )

  /** A ledger in memory, closed by hand unless `options` set an interval. */
  static readonly layerTest = (options: LocalLedgerOptions = {}): Layer.Layer<LocalLedger, never, Crypto> =>
    Layer.effect(
      LocalLedger,
      Effect.orDie(Effect.flatMap(opening, ({ openLedger }) => openLedger(options, undefined))) as Effect.Effect<
        OpenedLedger,
        never,
        Crypto
      >
    )
}
