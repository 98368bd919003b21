// Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint, tlog-cosignature).
import { Effect, Result } from "effect"
import { Base64, Hex } from "effect/encoding"
import { joinedBytes } from "../../../kernel/stellar/joinBytes.ts"
import { verifyEd25519 } from "../../../kernel/ledger/Ed25519.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"

type Hashing = Pick<Crypto["Service"], "sha256">

/** Key types: the first byte after the name. */
export const ed25519 = 1
const cosignature = 4

const text = new TextEncoder()

const keyHashOf = (crypto: Hashing, name: string, kind: number, publicKey: Uint8Array): Uint8Array =>
  crypto.sha256(joinedBytes(text.encode(`${name}\n`), Uint8Array.of(kind), publicKey)).slice(0, 4)

/** `NAME+hex+b64`, with which readers check signatures. */
export const verifierKey = (crypto: Hashing, name: string, publicKey: Uint8Array): string => {
  const key = Base64.encode(joinedBytes(Uint8Array.of(ed25519), publicKey))
  return `${name}+${Hex.encode(keyHashOf(crypto, name, ed25519, publicKey))}+${key}`
}

export const checkpointText = (origin: string, size: number, root: Uint8Array): string =>
  `${origin}\n${size}\n${Base64.encode(root)}\n`

/** Body of a note, and its signature lines. */
export const partsOf = (note: string) => {
  const end = note.indexOf("\n\n")
  return { body: note.slice(0, end + 1), lines: note.slice(end + 2).split("\n") }
}

interface NoteSigner<E> {
  readonly name: string
  readonly publicKey: Uint8Array
  readonly sign: (message: Uint8Array) => Effect.Effect<Uint8Array, E>
}

/** A note with one signature; `body` ends with a newline. */
export const signNote = <E>(
  crypto: Hashing,
  body: string,
  { name, publicKey, sign }: NoteSigner<E>
): Effect.Effect<string, E> =>
  Effect.map(sign(text.encode(body)), (signature) => {
    const signed = Base64.encode(joinedBytes(keyHashOf(crypto, name, ed25519, publicKey), signature))
    return `${body}\n— ${name} ${signed}\n`
  })

/** Parses a verifier key; undefined if it is invalid. */
export const readVerifierKey = (crypto: Hashing, written: string) => {
  const [name, hash, key, ...rest] = written.split("+")
  // Base64 has plus signs too.
  const bytes = Result.getOrElse(Base64.decode([key, ...rest].join("+")), () => new Uint8Array())
  const kind = bytes[0]
  const publicKey = bytes.slice(1)
  if (name === undefined || name === "" || /\s/.test(name) || publicKey.length !== 32) return undefined
  if (kind !== ed25519 && kind !== cosignature) return undefined
  return Hex.encode(keyHashOf(crypto, name, kind, publicKey)) === hash ? { name, kind, publicKey } : undefined
}

type VerifierKey = NonNullable<ReturnType<typeof readVerifierKey>>

const eightBytes = 8

/** The line with this key's valid signature, or witness cosignature, over `body`; undefined if none is valid. */
export const signatureBy = (
  crypto: Pick<Crypto["Service"], "sha256" | "ed25519VerifyNative">,
  key: VerifierKey,
  body: string,
  lines: ReadonlyArray<string>
): string | undefined => {
  const hash = keyHashOf(crypto, key.name, key.kind, key.publicKey)
  return lines.find((line) => {
    const prefix = `— ${key.name} `
    if (!line.startsWith(prefix)) return false
    const bytes = Result.getOrElse(Base64.decode(line.slice(prefix.length)), () => new Uint8Array())
    if (hash.some((byte, i) => bytes[i] !== byte)) return false
    if (key.kind === ed25519) return verifyEd25519(crypto, key.publicKey, text.encode(body), bytes.slice(4))
    if (bytes.length !== 68 + eightBytes) return false
    const time = new DataView(bytes.slice(4, 4 + eightBytes).buffer).getBigUint64(0)
    const message = text.encode(`cosignature/v1\ntime ${time}\n${body}`)
    return verifyEd25519(crypto, key.publicKey, message, bytes.slice(4 + eightBytes))
  })
}
