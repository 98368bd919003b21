// `tollkeeper ledger`: the embedded ledger by itself, for somebody who needs only a Stellar RPC in their tests.
import { Console, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { Supervisor } from "../../kernel/Supervisor.ts"
import { standalone } from "../../plugins/ledger-local/standalone.ts"
import { lockFolder } from "../platform/folderLock.ts"
import * as NodeCrypto from "../platform/nodeCrypto.ts"
import * as NodeDeadline from "../platform/nodeDeadline.ts"
import * as NodeListeners from "../platform/nodeListeners.ts"
import { growFreely } from "../platform/startHeap.ts"

/** Milliseconds between two ledgers, as the setting `local_ledger.close_interval_ms` has them. */
const [CLOSE_MIN, CLOSE_MAX] = [50, 60_000]

/** `manual`, or an interval such as `1s` or `250ms`. */
const readClose = (text: string): number | "manual" | undefined => {
  if (text === "manual") return "manual"
  const [, digits, unit] = /^(\d+)(ms|s)$/.exec(text) ?? []
  const millis = Number(digits) * (unit === "s" ? 1_000 : 1)
  return millis >= CLOSE_MIN && millis <= CLOSE_MAX ? millis : undefined
}

export const ledger = Command.make(
  "ledger",
  {
    port: Flag.Int("port").pipe(Flag.withDescription("TCP port; 0 picks a free one"), Flag.withDefault(8_000)),
    https: Flag.Int("https").pipe(
      Flag.withDescription("TCP port for HTTPS; needs --state for its certificate"),
      Flag.optional
    ),
    close: Flag.String("close").pipe(
      Flag.withDescription("Time between ledgers (1s, 250ms), or manual: POST /close makes the next one"),
      Flag.withDefault("1s")
    ),
    fault: Flag.String("fault").pipe(
      Flag.withDescription("A fault to play, such as drop=0.1 or rpc=getTransaction:503:0.2"),
      Flag.atLeast(0)
    ),
    allowOrigin: Flag.String("allow-origin").pipe(
      Flag.withDescription("Origin of a web page that may ask, such as http://localhost:3000; default none"),
      Flag.atLeast(0)
    ),
    state: Flag.String("state").pipe(
      Flag.withDescription("Folder to keep the ledger in; in memory without"),
      Flag.optional
    ),
    repair: Flag.Boolean("repair").pipe(
      Flag.withDescription("Give up what follows a damaged line of the kept ledger's journal"),
      Flag.withDefault(false)
    ),
    seedAccounts: Flag.Boolean("seed-accounts").pipe(
      Flag.withDescription("Four accounts with XLM and USDC from the start"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(
    function* (flags) {
      const close = readClose(flags.close)
      if (close === undefined)
        return yield* Effect.fail({
          _tag: "Usage",
          message: "--close needs a time from 50ms to 60s, such as 1s or 250ms, or manual"
        } as const)
      if (Option.isSome(flags.https) && Option.isNone(flags.state)) {
        return yield* Effect.fail({
          _tag: "Usage",
          message: "--https needs --state, the folder for its certificate"
        } as const)
      }
      if (Option.isSome(flags.state)) yield* lockFolder(flags.state.value)
      const running = yield* standalone({
        port: flags.port,
        close,
        faults: flags.fault,
        seedAccounts: flags.seedAccounts,
        allowedOrigins: flags.allowOrigin,
        repair: flags.repair,
        ...Option.match(flags.state, { onNone: () => ({}), onSome: (folder) => ({ folder }) }),
        ...Option.match(flags.https, { onNone: () => ({}), onSome: (httpsPort) => ({ httpsPort }) })
      })
      yield* Console.log(
        [
          `A Stellar ledger is at http://127.0.0.1:${running.port}  (RPC, /friendbot?addr=G…&usdc=100, /ledgers)`,
          ...(running.https === undefined
            ? []
            : [
                `  over HTTPS  https://127.0.0.1:${running.https.port}  (clients trust ` +
                  `${running.https.certificateFile})`
              ]),
          `  passphrase  ${running.passphrase}`,
          `  USDC        ${running.usdcContract}`,
          ...running.accounts.map(({ address, name, secret }) => `  ${name.padEnd(10)}  ${address}  ${secret}`)
        ].join("\n")
      )
      yield* Effect.sync(growFreely)
      return yield* Effect.never
    },
    Effect.scoped,
    (effect) =>
      Effect.provide(
        effect,
        Layer.mergeAll(NodeCrypto.layer, NodeDeadline.layer, NodeListeners.layer, Supervisor.layer)
      )
  )
).pipe(Command.withDescription("Run the embedded ledger by itself"))
