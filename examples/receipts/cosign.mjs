// Requests a witness's cosignature of a log's newest checkpoint (C2SP tlog-witness): it asks for the size that the
// witness has signed, sends the proof that the checkpoint continues it, and prints the checkpoint with the witness's
// line. Anyone may ask. It also checks such a line with the witness's key.
//   node cosign.mjs LOG did.json WITNESS    LOG is a folder, or a URL such as HOST/log
import { openTiles, readNewest } from "./tiles.mjs"
import { bytesOf, hexOf, openCheckpoint, sha256 } from "./verify.mjs"

const base64 = (hex) => btoa(String.fromCharCode(...hex.match(/../g).map((byte) => Number.parseInt(byte, 16))))

/** The checkpoint with the witness's line; rejects with the witness's refusal. */
export const cosign = async (log, did, witness) => {
  const { note, place } = await readNewest(log)
  const { size } = await openCheckpoint(note, did)
  const ask = async (old) => {
    const proof = old === 0 ? [] : await openTiles(place, size).consistency(old)
    const body = `old ${old}\n${proof.map((hash) => `${base64(hash)}\n`).join("")}\n${note}`
    const answer = await fetch(`${witness.replace(/\/+$/, "")}/add-checkpoint`, { method: "POST", body })
    return { status: answer.status, text: await answer.text() }
  }
  const first = await ask(0)
  const known = Number(first.text)
  const { status, text } = first.status === 409 && known > 0 && known <= size ? await ask(known) : first
  if (status !== 200) throw new Error(`the witness refused: ${status} ${text.trim()}`)
  if (bytesOf(text.trim().split(" ")[2]).length !== 76) throw new Error("the witness answered no cosignature")
  return note + text
}

/** A witness's verifier key, NAME+HASH+KEY (C2SP signed-note), of the type that cosigns; undefined for other texts. */
const readWitnessKey = async (text) => {
  const [, name, hash, key] = /^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text) ?? []
  const typed = bytesOf(key ?? "")
  const isWhole = typed.length === 33 && typed[0] === 4 && (await sha256(`${name}\n`, typed)).startsWith(hash)
  return isWhole ? { name, hash, publicKey: typed.subarray(1) } : undefined
}

/**
 * Time of a witness's cosignature of a checkpoint, as seconds since 1970; undefined if its line is missing or invalid.
 */
export const cosignedAt = async (note, witnessKey) => {
  const witness = await readWitnessKey(witnessKey)
  if (witness === undefined) throw new Error(`${witnessKey} is no witness's key: NAME+HASH+KEY of type 4`)
  const end = note.indexOf("\n\n") + 1
  const publicKey = await crypto.subtle.importKey("raw", witness.publicKey, "Ed25519", false, ["verify"])
  for (const line of note.slice(end + 1).split("\n")) {
    if (!line.startsWith(`— ${witness.name} `)) continue
    const [, , seal, ...rest] = line.split(" ")
    const bytes = bytesOf(seal)
    if (rest.length > 0 || btoa(String.fromCharCode(...bytes)) !== seal) continue
    if (bytes.length !== 76 || hexOf(bytes.subarray(0, 4)) !== witness.hash) continue
    const time = new DataView(bytes.buffer, 4, 8).getBigUint64(0)
    const signed = new TextEncoder().encode(`cosignature/v1\ntime ${time}\n${note.slice(0, end)}`)
    if (await crypto.subtle.verify("Ed25519", publicKey, bytes.subarray(12), signed)) return Number(time)
  }
  return undefined
}

if (globalThis.process?.argv[1]?.endsWith("cosign.mjs")) {
  const { readFile } = await import("node:fs/promises")
  const [log, didFile, witness] = process.argv.slice(2)
  console.log(await cosign(log, JSON.parse(await readFile(didFile, "utf8")), witness))
}
