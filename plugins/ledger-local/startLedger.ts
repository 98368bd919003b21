// The embedded ledger as the plugin starts it: its state in the state folder, its listeners, its greeting. Loaded when
// a profile enables it.
import { Effect, Layer } from "effect"
import { StartupBanner, type BannerLine } from "../../kernel/StartupBanner.ts"
import { Host } from "../../kernel/platform/Host.ts"
import { Config, type ConfigValues } from "./Config.ts"
import { LocalLedger } from "./LocalLedger.ts"
import { ledgerFolder, type Secured, serve, type ServerAddress } from "./serve.ts"

/** A ledger in `folder` by these settings, not yet listening. */
export const ledgerLayer = (config: ConfigValues, folder: string) =>
  LocalLedger.layer(
    {
      close: config.close,
      faults: config.faults,
      ...(config.closeMillisMax === undefined ? {} : { closeMillisMax: config.closeMillisMax })
    },
    folder
  )

/**
 * The banner's lines when the process is ready. The HTTPS listener may open a moment later, at the configured port; if
 * that port was taken, another program answers there.
 */
const greet = Effect.fnUntraced(function* (serving: ServerAddress, { host, httpsPort }: ConfigValues) {
  const greeting = yield* StartupBanner
  const whereSecured = (now: "opening" | Secured | undefined): ReadonlyArray<string> => {
    if (httpsPort === undefined) return []
    if (now === undefined) return [`no HTTPS: port ${httpsPort} is taken (--ledger-https-port chooses another)`]
    const port = now === "opening" ? httpsPort : now.port
    return [port === 0 ? "HTTPS at a free port, which the log names" : `https://${host}:${port}`]
  }
  const line: Effect.Effect<BannerLine> = Effect.map(serving.securing, (now) => ({
    label: "ledger",
    where: [`${serving.url}  (RPC, /friendbot?addr=G…&usdc=100)`, ...whereSecured(now)]
  }))
  yield* greeting.add(line)
  yield* greeting.tryCommand("pay")
})

export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* Config
    const { stateFolder } = yield* Host
    const folder = yield* ledgerFolder(stateFolder)
    return Layer.effectDiscard(Effect.flatMap(serve(config, folder), (serving) => greet(serving, config))).pipe(
      Layer.provideMerge(ledgerLayer(config, folder))
    )
  })
).pipe(Layer.provide(Config.layer))
