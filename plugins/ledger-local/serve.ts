// The embedded ledger on the network and on the clock: an HTTP listener immediately, an HTTPS one as soon as its
// certificate exists (which does not delay the start), and an actor that closes ledgers. All of it ends with the Scope.
// A port that is taken fails the start; for HTTPS it is a warning.
import { Deferred, Effect, Path } from "effect"
import { Listeners } from "../../kernel/platform/Listeners.ts"
import { Supervisor } from "../../kernel/actor/Supervisor.ts"
import { admit } from "./admit.ts"
import type { ConfigValues } from "./Config.ts"
import { BODY_BYTES_MAX, handle } from "./httpApi.ts"
import { LocalLedger } from "./LocalLedger.ts"
import { certificate } from "./node/certificate.ts"

export interface ServerAddress {
  /** Where RPC, friendbot and ledgers are. */
  readonly url: string
  readonly port: number
  /** Waits for the HTTPS listener; undefined when none was requested or its port cannot be opened. */
  readonly secured: Effect.Effect<Secured | undefined>
  /** The current state of the HTTPS listener. */
  readonly securing: Effect.Effect<"opening" | Secured | undefined>
}

export interface Secured {
  readonly port: number
  /** The certificate's file, which clients must trust. */
  readonly certificateFile: string
}

export const ledgerFolder = (stateFolder: string) => Effect.map(Path.Path, (path) => path.join(stateFolder, "ledger"))

export const serve = Effect.fnUntraced(function* (config: ConfigValues, folder: string) {
  const ledger = yield* LocalLedger
  const listeners = yield* Listeners
  const supervisor = yield* Supervisor
  const answer = admit(config, (request) => handle(ledger, request))
  const { port } = yield* listeners.open(
    { host: config.host, port: config.port, setting: "local_ledger.port", bodyBytesMax: BODY_BYTES_MAX },
    answer
  )
  const url = `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`
  yield* ledger.setFriendbotUrl(`${url}/friendbot`)

  const { httpsPort } = config
  const secured = yield* Deferred.make<Secured | undefined>()
  if (httpsPort === undefined) yield* Deferred.succeed(secured, undefined)
  else {
    const secure = Effect.gen(function* () {
      const { key, cert, file } = yield* certificate(folder)
      const opened = yield* listeners.open(
        { host: config.host, port: httpsPort, tls: { key, cert }, bodyBytesMax: BODY_BYTES_MAX },
        answer
      )
      yield* Effect.logInfo(`ledger over HTTPS at ${config.host}:${opened.port}; clients trust ${file}`)
      yield* Deferred.succeed(secured, { port: opened.port, certificateFile: file })
      return yield* Effect.never
    }).pipe(
      Effect.scoped,
      Effect.catch((error) => Effect.logWarning(`the ledger has no HTTPS: port ${error.port} cannot be opened`)),
      Effect.ensuring(Deferred.succeed(secured, undefined))
    )
    yield* supervisor.start({ id: "https", restart: "transient", run: secure })
  }

  const { close } = config
  if (close !== "manual") {
    yield* supervisor.start({
      id: "close-ledgers",
      restart: "permanent",
      // A ledger that cannot be closed now is tried again at the next interval.
      run: Effect.forever(
        Effect.catchDefect(Effect.delay(ledger.closeDue, close), (defect) =>
          Effect.logError("the embedded ledger could not close a ledger", defect)
        )
      )
    })
  }
  const securing = Effect.gen(function* () {
    return (yield* Deferred.isDone(secured)) ? yield* Deferred.await(secured) : ("opening" as const)
  })
  const serving: ServerAddress = { url, port, secured: Deferred.await(secured), securing }
  return serving
})
