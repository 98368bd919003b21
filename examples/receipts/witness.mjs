// A witness (C2SP tlog-witness, tlog-cosignature). It signs a checkpoint only when that continues the last one it
// signed, and stores it before it answers, so a log cannot show it two stories, not even across a crash or through a
// second process on the same file. If another key of the log signed the last checkpoint, the log itself must announce
// the new key in an entry. One file has the witness's key and its signed checkpoints; it is a secret.
//   PORT=3010 node witness.mjs did.json STATE.json NAME    did.json: of the log's facilitator; it is read each time
import { open, readFile, rename } from "node:fs/promises"
import { createServer } from "node:http"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { checkAge } from "./check.mjs"
import { openTiles, readKeys } from "./tiles.mjs"
import { bytesOf, checkConsistency, hexOf, isInForce, openCheckpoint, sha256 } from "./verify.mjs"

const base64 = (bytes) => btoa(String.fromCharCode(...bytes))
const utf8 = (text) => new TextEncoder().encode(text)

const refused = (status, message, type = "text/plain; charset=utf-8") =>
  Object.assign(new Error(message), { status, type })
const refusedAs = (status) => (error) => Promise.reject(refused(status, error.message))

/** Flushes a file or folder to the disk. */
const sync = async (path) => {
  const handle = await open(path, "r")
  await handle.sync().finally(() => handle.close())
}

/** Replaces the file in one step, after its bytes are on the disk. */
const store = async (file, value) => {
  const handle = await open(`${file}.new`, "w", 0o600)
  await handle.writeFile(JSON.stringify(value))
  await handle.sync().finally(() => handle.close())
  await rename(`${file}.new`, file)
  await sync(dirname(file))
}

const readState = async (file) => {
  const text = await readFile(file, "utf8").catch((error) =>
    error.code === "ENOENT" ? undefined : Promise.reject(error)
  )
  return text === undefined ? undefined : JSON.parse(text)
}

const lockTries = 200
const pause = () => new Promise((resolve) => setTimeout(resolve, 25))

/** Locks a file, and returns the release; undefined while another process has it. The lock ends with the process. */
const hold = (file) => {
  const opened = new DatabaseSync(file, { timeout: 0 })
  try {
    opened.exec("pragma journal_mode = memory; begin exclusive")
  } catch (error) {
    opened.close()
    if (/locked|busy/i.test(String(error))) return undefined
    throw error
  }
  return () => opened.close()
}

/** Runs exclusively among all processes that use the file, in other containers too. */
const alone = async (file, run) => {
  let release
  for (let tries = 0; (release = hold(`${file}.held`)) === undefined; tries++) {
    if (tries === lockTries) throw refused(503, `${file} is another process's`)
    await pause()
  }
  return run().finally(release)
}

/** The witness's own key; creates the file if it is missing. */
const openKey = async (file) => {
  const made = async () => {
    const found = await readState(file)
    if (found !== undefined) return found
    const { privateKey } = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])
    const state = { key: await crypto.subtle.exportKey("jwk", privateKey), signed: {} }
    await store(file, state)
    return state
  }
  return ((await readState(file)) ?? (await alone(file, made))).key
}

/** Address of a log: below its origin, over HTTP only on this machine. */
const placeOf = (origin) => `${/^(localhost|127\.0\.0\.1)[:/]/.test(origin) ? "http" : "https"}://${origin}`

/** The keys of a log from its own entries in a checkpoint's tree, in a document's form. */
const introduced = async (origin, note, place) => {
  const [, size, root] = note.split("\n")
  const tree = { origin, size: Number(size), root: hexOf(bytesOf(root)) }
  const tiles = openTiles(place, tree.size)
  if ((await tiles.root(0, tree.size)) !== tree.root) throw new Error("the log does not serve this checkpoint's tree")
  return (await readKeys(place, tree, tiles)).filter(({ use }) => use === "log")
}

/**
 * Opens a checkpoint. `former` is the id of the key that signed the last one. It is accepted unless the document lists
 * it as retired; another key is accepted if the log has announced it since, and it is in force.
 */
const openFrom = async (note, did, former, place) => {
  const tree = await openCheckpoint(note, did).catch((error) => error)
  if (tree.key && (former ?? tree.key.id) === tree.key.id) return tree
  // The first key must come from the document.
  if (!tree.key && former === undefined) throw tree
  const origin = note.split("\n", 1)[0]
  const events = await introduced(origin, note, place ?? placeOf(origin)).catch((error) => {
    throw new Error(`${tree.message ?? `another key signed it, ${tree.key.id}`}; its log: ${error.message}`)
  })
  const announced = (id) => events.findLastIndex((one) => one.id === id && one.event === "announced")
  const verificationMethod = events.filter(
    ({ event, id }) => event === "announced" && announced(id) >= announced(former)
  )
  const opened = await openCheckpoint(note, { ...did, verificationMethod }, NaN)
  if (!isInForce(events, opened.key, Date.now() / 1000))
    throw new Error(`the log does not list ${opened.key.id} as in force`)
  return opened
}

/** The log of a host that no other log continues. */
const newestOf = (signed, origin) => {
  const isEnded = (one) => Object.values(signed).some(({ ends }) => ends?.origin === one)
  return Object.keys(signed).find((one) => one.split("/")[0] === origin.split("/")[0] && !isEnded(one))
}

/**
 * The previous log of an epoch. A log that begins a new epoch names in a further line the log that it continues. That
 * must be the newest log that we signed for its host, to at least the signed size; otherwise a backup was restored,
 * perhaps repeatedly. Returns the log that ends here, undefined for the first log of a host. Rejects a log that
 * continues less.
 */
const continued = (note, origin, signed) => {
  const newest = newestOf(signed, origin)
  const [, previous, size, root] = /^(?:.+\n){3}previous (\S+) (\d+) (\S+)\n/.exec(note) ?? []
  if (newest === undefined || (previous !== undefined && signed[previous] === undefined)) return { origin: newest }
  const known = signed[newest]
  const isSame = Number(size) > known.size || (Number(size) === known.size && hexOf(bytesOf(root)) === known.root)
  if (previous !== newest || !isSame)
    throw refused(422, `it is to continue ${newest}, of which ${known.size} leaves are known`)
  return { origin: newest, size: Number(size) }
}

/** A witness over a state file. `did` is a document, or reads one; `place`: where its log is, if not at its origin. */
export const openWitness = async (did, file, name, place) => {
  const jwk = await openKey(file)
  const privateKey = await crypto.subtle.importKey("jwk", jwk, "Ed25519", false, ["sign"])
  const typedKey = Uint8Array.of(4, ...bytesOf(jwk.x))
  const id = (await sha256(`${name}\n`, typedKey)).slice(0, 8)
  const document = typeof did === "function" ? did : async () => did
  let last = Promise.resolve()

  const cosign = async (body) => {
    const seconds = Math.floor(Date.now() / 1000)
    const time = new Uint8Array(8)
    new DataView(time.buffer).setBigUint64(0, BigInt(seconds))
    const signature = await crypto.subtle.sign("Ed25519", privateKey, utf8(`cosignature/v1\ntime ${seconds}\n${body}`))
    const keyId = id.match(/../g).map((byte) => Number.parseInt(byte, 16))
    return `— ${name} ${base64([...keyId, ...time, ...new Uint8Array(signature)])}\n`
  }

  /** The checks of tlog-witness, in its order, against the signed state of the log. */
  const check = async ({ note, old, proof }, signed) => {
    const [origin] = note.split("\n", 1)
    const trusted = await document()
    const host = /^([^\s/]+)\/log(\/[\w-]+)?$/.exec(origin)?.[1]
    if (host === undefined || `did:web:${encodeURIComponent(host)}` !== trusted.id) throw refused(404, "an unknown log")
    const known = signed[origin] ?? { size: 0 }
    const ended = Object.values(signed).find(({ ends }) => ends?.origin === origin)?.ends
    const tree = await openFrom(note, trusted, known.key ?? signed[newestOf(signed, origin)]?.key, place).catch(
      refusedAs(403)
    )
    // A frozen log is not cosigned. A log that once had times keeps them.
    if (tree.time !== undefined || known.hasTime) await checkAge(tree).catch(refusedAs(403))
    if (old > tree.size) throw refused(400, "the old size is above the new one")
    const conflict = refused(409, `${known.size}\n`, "text/x.tlog.size")
    if (old !== known.size || (old === tree.size && old > 0 && known.root !== tree.root)) throw conflict
    const isEmpty = tree.size === 0 && tree.root === (await sha256())
    if (old === 0 && (proof.length > 0 || (tree.size === 0 && !isEmpty))) throw refused(422, "no proof of an empty log")
    if (old > 0) await checkConsistency(known, tree, proof).catch(refusedAs(422))
    if (ended && tree.size > Math.max(known.size, ended.size ?? 0))
      throw refused(422, "it ended, and another continues it")
    const ends = signed[origin] ? known.ends : continued(note, origin, signed)
    return [origin, { size: tree.size, root: tree.root, key: tree.key.id, hasTime: tree.time !== undefined, ends }]
  }

  const add = async (request) => {
    const end = request.indexOf("\n\n")
    const [first, ...lines] = request.slice(0, Math.max(end, 0)).split("\n")
    const note = request.slice(end + 2)
    const [, old] = /^old (0|[1-9][0-9]{0,14})$/.exec(first) ?? []
    const isProof = lines.every((line) => /^[A-Za-z0-9+/]{43}=$/.test(line) && base64(bytesOf(line)) === line)
    if (end < 0 || old === undefined || lines.length > 63 || !isProof)
      throw refused(400, "not a request of tlog-witness")
    const proof = lines.map((line) => hexOf(bytesOf(line)))
    return alone(file, async () => {
      const state = await readState(file)
      const [origin, one] = await check({ note, old: Number(old), proof }, state.signed)
      await store(file, { ...state, signed: { ...state.signed, [origin]: one } })
      return cosign(note.slice(0, note.lastIndexOf("\n\n") + 1))
    })
  }

  return {
    key: `${name}+${id}+${base64(typedKey)}`,
    /** Cosigns a request's checkpoint; rejects with a status if it is refused. */
    add: (request) => (last = last.catch(() => {}).then(() => add(request)))
  }
}

if (process.argv[1]?.endsWith("witness.mjs")) {
  const [didFile, file, name] = process.argv.slice(2)
  const port = process.env.PORT ?? "3010"
  const did = () => readFile(didFile, "utf8").then(JSON.parse)
  const witness = await openWitness(did, file, name)
  const answer = async (request) => {
    let body = ""
    for await (const text of request.setEncoding("utf8")) body = (body + text).slice(0, 65_536)
    if (request.method === "POST" && request.url.endsWith("/add-checkpoint")) return witness.add(body)
    throw refused(404, "POST /add-checkpoint")
  }
  const server = createServer((request, response) =>
    answer(request).then(
      (line) => response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(line),
      ({ message, status = 500, type = "text/plain; charset=utf-8" }) =>
        response.writeHead(status, { "content-type": type }).end(message)
    )
  )
  server.listen(Number(port), "127.0.0.1", () => console.log(`witness ${witness.key} at http://127.0.0.1:${port}/`))
}
