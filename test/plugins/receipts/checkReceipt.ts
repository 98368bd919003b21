// A separate reading of receipts, checkpoints and proofs with Node's own cryptography, without code of the plugin.
import { createHash, createPublicKey, verify } from "node:crypto"
import { type FetchOptions, fetchReceipts } from "../../../runtime/fetchReceipts.ts"

const sha256 = (...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** Whether an ed25519 key, 32 bytes, signed a message. */
const isSigned = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean => {
  const x = Buffer.from(publicKey).toString("base64url")
  return verify(null, message, createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" }), signature)
}

/** The claims of a compact JWS that a key of the DID document signed; throws otherwise. */
export const readReceipt = (jws: string, did: any): any => {
  const [header, payload, signature] = jws.split(".") as [string, string, string]
  const { alg, kid } = JSON.parse(Buffer.from(header, "base64url").toString())
  const method = did.verificationMethod.find(({ id }: { id: string }) => id === kid)
  if (alg !== "EdDSA" || method === undefined || !did.assertionMethod.includes(kid)) throw new Error("no key for it")
  const key = Buffer.from(method.publicKeyJwk.x, "base64url")
  if (!isSigned(key, Buffer.from(`${header}.${payload}`), Buffer.from(signature, "base64url")))
    throw new Error("not signed")
  return JSON.parse(Buffer.from(payload, "base64url").toString())
}

/** Size and root of a checkpoint that a verifier key signed; throws otherwise. */
export const readCheckpoint = (note: string, verifierKey: string) => {
  const [name, hash, key] = verifierKey.split(/\+(?=[0-9a-f]{8}\+)|(?<=\+[0-9a-f]{8})\+/) as [string, string, string]
  const [text, signatures] = note.split("\n\n") as [string, string]
  const line = signatures.split("\n").find((one) => one.startsWith(`— ${name} `))
  const signature = Buffer.from(line!.slice(`— ${name} `.length), "base64")
  if (signature.subarray(0, 4).toString("hex") !== hash) throw new Error("another key")
  if (!isSigned(Buffer.from(key, "base64").subarray(1), Buffer.from(`${text}\n`), signature.subarray(4)))
    throw new Error("not signed")
  const [origin, size, root] = text.split("\n") as [string, string, string]
  return { origin, size: Number(size), root: Buffer.from(root, "base64").toString("hex") }
}

/** Root of an audit path, as RFC 9162 section 2.1.3.2 computes it. */
export const rootOf = (leaf: Uint8Array, hashes: ReadonlyArray<string>, index: number, size: number): string => {
  let [fn, sn, r]: [number, number, Uint8Array] = [index, size - 1, leaf]
  for (const hash of hashes) {
    const p = Buffer.from(hash, "hex")
    if (sn === 0) throw new Error("too long a path")
    if (fn % 2 === 1 || fn === sn) {
      r = sha256(Uint8Array.of(1), p, r)
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1]
    } else r = sha256(Uint8Array.of(1), r, p)
    ;[fn, sn] = [fn >> 1, sn >> 1]
  }
  if (sn !== 0) throw new Error("too short a path")
  return Buffer.from(r).toString("hex")
}

/** Hash of an outcome's leaf. */
export const outcomeLeaf = (record: string, salt: string): Buffer =>
  sha256(Uint8Array.of(0), Uint8Array.of(1), sha256(Buffer.from(salt, "base64url"), Buffer.from(record)))

export const hashText = (text: string): string => `sha256:${sha256(Buffer.from(text)).toString("hex")}`

/** All answers that `tollkeeper receipts fetch` prints. */
export const fetchAll = async (options: FetchOptions): Promise<ReadonlyArray<any>> => {
  const answers: Array<any> = []
  for await (const line of fetchReceipts(options)) answers.push(JSON.parse(line))
  return answers
}
