// Has a witness cosign a log's newest checkpoint (C2SP tlog-witness): it asks which size the witness has signed, sends
// the proof that the checkpoint continues it, and prints the note with the witness's line. Anyone may ask.
//   node cosign.mjs LOG did.json WITNESS    LOG is a folder, or a URL such as HOST/log
import { openTiles, readText } from "./tiles.mjs"
import { bytesOf, openCheckpoint } from "./verify.mjs"

const base64 = (hex) => btoa(String.fromCharCode(...hex.match(/../g).map((byte) => Number.parseInt(byte, 16))))

/** The checkpoint's note with the witness's line; rejects with the witness's refusal. */
export const cosign = async (log, did, witness) => {
  const note = await readText(log, "checkpoint")
  const { size } = await openCheckpoint(note, did)
  const ask = async (old) => {
    const proof = old === 0 ? [] : await openTiles(log, size).consistency(old)
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

if (globalThis.process?.argv[1]?.endsWith("cosign.mjs")) {
  const { readFile } = await import("node:fs/promises")
  const [log, didFile, witness] = process.argv.slice(2)
  console.log(await cosign(log, JSON.parse(await readFile(didFile, "utf8")), witness))
}
