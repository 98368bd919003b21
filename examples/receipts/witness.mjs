// A witness (C2SP tlog-witness, tlog-cosignature): it signs a checkpoint only when that continues the last one it
// signed, and stores it before it answers, so that a log cannot show it two stories, not even across a crash. Requests
// are handled one after another. Its key and what it signed are in one file, which is a secret.
//   PORT=3010 node witness.mjs did.json STATE.json NAME    did.json: of the log's facilitator, whose keys it trusts
import { open, readFile, rename } from "node:fs/promises"
import { createServer } from "node:http"
import { bytesOf, checkConsistency, hexOf, openCheckpoint, sha256 } from "./verify.mjs"

const base64 = (bytes) => btoa(String.fromCharCode(...bytes))
const utf8 = (text) => new TextEncoder().encode(text)

const refused = (status, message, type = "text/plain") => Object.assign(new Error(message), { status, type })
const refusedAs = (status) => (error) => Promise.reject(refused(status, error.message))

/** Replaces the file in one step, once its bytes are on the disk. */
const store = async (file, value) => {
  const handle = await open(`${file}.new`, "w", 0o600)
  await handle.writeFile(JSON.stringify(value))
  await handle.sync()
  await handle.close()
  await rename(`${file}.new`, file)
}

/** A witness over a state file, which is made when it is not there. */
export const openWitness = async (did, file, name) => {
  const readState = () => readFile(file, "utf8").then(JSON.parse)
  const state = await readState().catch(async (error) => {
    if (error.code !== "ENOENT") throw error
    const { privateKey } = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])
    const made = { key: await crypto.subtle.exportKey("jwk", privateKey), signed: {} }
    await store(file, made)
    return made
  })
  const privateKey = await crypto.subtle.importKey("jwk", state.key, "Ed25519", false, ["sign"])
  const typedKey = Uint8Array.of(4, ...bytesOf(state.key.x))
  const id = (await sha256(`${name}\n`, typedKey)).slice(0, 8)
  let last = Promise.resolve()

  const cosign = async (body) => {
    const seconds = Math.floor(Date.now() / 1000)
    const time = new Uint8Array(8)
    new DataView(time.buffer).setBigUint64(0, BigInt(seconds))
    const signature = await crypto.subtle.sign("Ed25519", privateKey, utf8(`cosignature/v1\ntime ${seconds}\n${body}`))
    const keyId = id.match(/../g).map((byte) => Number.parseInt(byte, 16))
    return `— ${name} ${base64([...keyId, ...time, ...new Uint8Array(signature)])}\n`
  }

  const add = async (request) => {
    const end = request.indexOf("\n\n")
    const [old, ...proof] = request.slice(0, end).split("\n")
    const note = request.slice(end + 2)
    const [, size] = /^old (0|[1-9][0-9]{0,15})$/.exec(old) ?? []
    if (end < 0 || size === undefined || proof.length > 63) throw refused(400, "not a request of tlog-witness")
    const [origin] = note.split("\n")
    if (`did:web:${encodeURIComponent(origin.split("/")[0])}` !== did.id) throw refused(404, "an unknown log")
    const tree = await openCheckpoint(note, did).catch(refusedAs(403))
    const known = state.signed[origin] ?? { size: 0 }
    if (Number(size) > tree.size) throw refused(400, "the old size is above the new one")
    if (Number(size) !== known.size) throw refused(409, `${known.size}\n`, "text/x.tlog.size")
    if (known.size === tree.size && known.root !== undefined && known.root !== tree.root)
      throw refused(409, `${known.size}\n`, "text/x.tlog.size")
    const path = await Promise.all(proof.map(async (line) => hexOf(bytesOf(line)))).catch(refusedAs(400))
    if (known.size > 0) await checkConsistency(known, tree, path).catch(refusedAs(422))
    const signed = { ...state.signed, [origin]: { size: tree.size, root: tree.root } }
    await store(file, { ...state, signed })
    state.signed = signed
    return cosign(note.slice(0, note.indexOf("\n\n") + 1))
  }

  return {
    key: `${name}+${id}+${base64(typedKey)}`,
    /** The cosignature of a request's checkpoint; rejects with a status where it is refused. */
    add: (request) => (last = last.catch(() => {}).then(() => add(request)))
  }
}

if (process.argv[1]?.endsWith("witness.mjs")) {
  const [didFile, file, name] = process.argv.slice(2)
  const port = process.env.PORT ?? "3010"
  const witness = await openWitness(JSON.parse(await readFile(didFile, "utf8")), file, name)
  const answer = async (request) => {
    let body = ""
    for await (const text of request.setEncoding("utf8")) body = (body + text).slice(0, 65_536)
    if (request.method === "POST" && request.url.endsWith("/add-checkpoint")) return witness.add(body)
    throw refused(404, "POST /add-checkpoint")
  }
  const server = createServer((request, response) =>
    answer(request).then(
      (line) => response.end(line),
      ({ message, status = 500, type = "text/plain" }) =>
        response.writeHead(status, { "content-type": type }).end(message)
    )
  )
  server.listen(Number(port), "127.0.0.1", () => console.log(`witness ${witness.key} at http://127.0.0.1:${port}/`))
}
