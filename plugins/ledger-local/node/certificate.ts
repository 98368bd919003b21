// The self-signed certificate of the HTTPS listener: for this machine and for the test network's Horizon, whose name
// official clients have built in. Made once, kept in the state folder for ten years; clients trust it by its file
// (`NODE_EXTRA_CA_CERTS`). The library is loaded only to make one. Files are written atomically, the certificate last:
// a reader that sees it may use it, and an interrupted start leaves no broken file behind.
import { Clock, Effect, FileSystem, Path } from "effect"
import { privateFolder } from "./LedgerJournal.ts"

interface Certificate {
  readonly key: string
  readonly cert: string
  /** The file that a client must trust. */
  readonly file: string
}

const YEARS_MILLIS = 10 * 365 * 24 * 3_600 * 1_000
const HOUR_MILLIS = 3_600 * 1_000
/** Host names in the certificate, in addition to addresses. */
export const servedNames: ReadonlyArray<string> = [
  "localhost",
  "horizon-testnet.stellar.org",
  "soroban-testnet.stellar.org"
]

const generate = Effect.fnUntraced(function* () {
  const now = yield* Clock.currentTimeMillis
  return yield* Effect.promise(async () => {
    const selfsigned = await import("selfsigned")
    return selfsigned.generate([{ name: "commonName", value: "Tollkeeper local ledger" }], {
      keyType: "ec",
      curve: "P-256",
      algorithm: "sha256",
      notBeforeDate: new Date(now - HOUR_MILLIS),
      notAfterDate: new Date(now + YEARS_MILLIS),
      extensions: [
        // A leaf: trusting it means trusting this ledger at these names, and no certificate that its key might sign.
        { name: "basicConstraints", cA: false, critical: true },
        { name: "keyUsage", digitalSignature: true, critical: true },
        { name: "extKeyUsage", serverAuth: true },
        {
          name: "subjectAltName",
          altNames: [
            ...servedNames.map((value) => ({ type: 2 as const, value })),
            { type: 7, ip: "127.0.0.1" },
            { type: 7, ip: "::1" }
          ]
        }
      ]
    })
  })
})

/** The certificate in `folder`; makes a new one if it is missing. */
export const certificate = Effect.fn("certificate")(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const keyFile = path.join(folder, "ledger-key.pem")
  const certFile = path.join(folder, "ledger-cert.pem")
  const known = (yield* files.exists(keyFile)) && (yield* files.exists(certFile))
  if (!known) {
    yield* privateFolder(folder)
    const made = yield* generate()
    const put = (file: string, content: string, mode: number) =>
      Effect.andThen(files.writeFileString(`${file}.new`, content, { mode }), files.rename(`${file}.new`, file))
    yield* put(keyFile, made.private, 0o600)
    yield* put(certFile, made.cert, 0o644)
  }
  const result: Certificate = {
    key: yield* files.readFileString(keyFile),
    cert: yield* files.readFileString(certFile),
    file: certFile
  }
  return result
}, Effect.orDie)
