// The auditor's script over downloaded logs: correct continuations, and changes (altered, removed, reordered, forked),
// each found at its leaf. And the witness, which signs only one history, also across a restart.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cosign } from "../../../examples/receipts/cosign.mjs"
import {
  compareStories,
  wentBack,
  isUnderRetiredKey,
  judge,
  openStory,
  witnessesOfBoth
} from "../../../examples/receipts/two-stories.mjs"
import { openTiles, readNewest } from "../../../examples/receipts/tiles.mjs"
import { openWitness } from "../../../examples/receipts/witness.mjs"
import { freePort } from "../../support/freePort.ts"
import {
  checkpointOf,
  did,
  didDocument,
  keyEntryOf,
  levelsOf,
  makeKey,
  methodOf,
  noteOf,
  outcomeOf,
  receiptOf,
  rootOf,
  writeLog
} from "../../support/receiptLog.ts"

const [key, log] = [makeKey(did, "receipt"), makeKey(did, "log")]
const doc = didDocument(methodOf(key), methodOf(log))
const entry = (n: number) => outcomeOf(receiptOf(key, n), n).entry

let folder = ""
let logs = 0
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "stories-"))))
afterAll(() => rm(folder, { recursive: true, force: true }))

const story = async (entries: ReadonlyArray<Uint8Array>) => {
  const place = join(folder, String(logs++))
  await writeLog(place, log, entries)
  return openStory(place, doc)
}

const size = 700
const entries = Array.from({ length: size }, (_, n) => entry(n))

describe("two downloads of a log", () => {
  it("are one story where one continues the other", async () => {
    const [older, newer] = [await story(entries.slice(0, 513)), await story(entries)]
    expect(await compareStories(older, newer)).toBeUndefined()
    expect(await compareStories(newer, older)).toBeUndefined()
    // A log that signs an old state with a new time has gone back.
    const at = ({ tree, ...rest }: typeof older, time: number) => ({ ...rest, tree: { ...tree, time } })
    expect(wentBack(at(older, 2_000), at(newer, 1_000))).toBe(true)
    expect(wentBack(at(newer, 1_000), at(older, 2_000))).toBe(true)
    for (const [before, after] of [
      [1_000, 2_000],
      [1_500, 1_000]
    ] as const)
      expect(wentBack(at(older, before), at(newer, after))).toBe(false)
  })

  it.each([
    ["altered", 300, entries.with(300, entry(9_000))],
    ["removed", 256, entries.toSpliced(256, 1)],
    ["inserted", 255, entries.toSpliced(255, 0, entry(9_000))],
    ["reordered", 511, entries.with(511, entries[512]!).with(512, entries[511]!)],
    ["forked", 699, entries.with(699, entry(9_000))],
    ["rewritten from the start", 0, entries.toReversed()]
  ] as const)("are two where leaves were %s, from leaf %i on", async (_, at, changed) => {
    const [a, b] = [await story(entries), await story(changed)]
    const found = await compareStories(a, b)
    expect(found?.index).toBe(at)
    expect(found?.a.commitment).toBe(Buffer.from(entries[at]!.subarray(1)).toString("hex"))
    expect(found?.b.commitment).toBe(Buffer.from(changed[at]!.subarray(1)).toString("hex"))
  })

  it("download a failed tile again", async () => {
    const place = join(folder, String(logs++))
    await writeLog(place, log, entries.slice(0, 3))
    let failures = 1
    const server = createServer((request, response) => {
      if (failures-- > 0) return void response.writeHead(503).end()
      void readFile(join(place, request.url!)).then((bytes) => response.end(bytes))
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const tiles = openTiles(`http://127.0.0.1:${port}`, 3)
    await expect(tiles.root(0, 3)).rejects.toThrow("answered 503")
    expect(await tiles.root(0, 3)).toBe(rootOf(levelsOf(entries.slice(0, 3)), 3).toString("hex"))
    server.close()
  })

  it("are refused where tiles are not the signed checkpoint's", async () => {
    const place = join(folder, String(logs++))
    await writeLog(place, log, entries.with(3, entry(9_000)))
    const note = checkpointOf(log, size, rootOf(levelsOf(entries), size))
    await writeFile(join(place, "checkpoint"), note)
    await expect(openStory(place, doc)).rejects.toThrow("do not match its checkpoint")
  })

  it("are not compared where they are of two epochs, each of which is read below its number", async () => {
    const place = join(folder, String(logs++))
    const old = await writeLog(join(place, "1"), log, entries.slice(0, 300))
    const next = await writeLog(join(place, "2"), log, entries.slice(0, 20), "pay.example/log/2")
    // The layout below /log: the first epoch, a list of all, and each epoch by its name.
    const whole = await writeLog(place, log, entries.slice(0, 300))
    expect(await readNewest(place)).toEqual({ note: whole, place })
    const epochs = ["pay.example/log", "pay.example/log/2"].map((origin) => ({ origin }))
    await writeFile(join(place, "epochs"), JSON.stringify({ epochs }))
    expect(await readNewest(place)).toEqual({ note: next, place: join(place, "2") })
    expect(await readNewest(join(place, "2"))).toEqual({ note: next, place: join(place, "2") })
    expect(await readNewest(join(place, "1"))).toEqual({ note: old, place: join(place, "1") })
    const [a, b] = [await openStory(join(place, "1"), doc), await openStory(place, doc)]
    expect(b.tree.size).toBe(20)
    await expect(compareStories(a, b)).rejects.toThrow("are two epochs")
  })

  it("are decided by no ledger that has forgotten the transaction", async () => {
    const settled = outcomeOf(receiptOf(key, 5), 5)
    const [a, b] = [await story(entries.with(5, settled.entry)), await story(entries.with(5, entry(9_000)))]
    let oldestLedger = 1_006
    const rpc = createServer((_, response) =>
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: { status: "NOT_FOUND", oldestLedger } }))
    ).listen(0, "127.0.0.1")
    await once(rpc, "listening")
    const url = `http://127.0.0.1:${(rpc.address() as { port: number }).port}`
    const { a: leaf } = (await compareStories(a, b))!
    expect(await judge(leaf, [{ outcomes: [settled] }], url)).toContain("decides nothing")
    oldestLedger = 1_005
    expect(await judge(leaf, [{ outcomes: [settled] }], url)).toContain("this story is false")
    rpc.close()
  })

  it("name the story that the ledger agrees with, by one RPC and the opened leaf", async () => {
    const [settled, denied] = [outcomeOf(receiptOf(key, 5), 5), outcomeOf(receiptOf(key, 5), 5, { outcome: "failed" })]
    const [a, b] = [await story(entries.with(5, settled.entry)), await story(entries.with(5, denied.entry))]
    const found = (await compareStories(a, b))!
    const rpc = createServer((_, response) =>
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: { status: "SUCCESS", ledger: 1_005 } }))
    ).listen(0, "127.0.0.1")
    await new Promise((resolve) => rpc.once("listening", resolve))
    const url = `http://127.0.0.1:${(rpc.address() as { port: number }).port}`
    const answers = [{ outcomes: [settled, denied] }]
    expect(await judge(found.a, answers, url)).toContain("this story is true")
    expect(await judge(found.b, answers, url)).toContain("this story is false")
    rpc.close()
  })

  it("accuse a witness by its verified lines alone", async () => {
    const [a, b] = [await story(entries), await story(entries.with(7, entry(9_000)))]
    const line = "— lax.example AAAA\n"
    const witness = async (file: string) => openWitness(doc, join(folder, file), "lax.example")
    const lax = await witness("lax-1.json")
    const cosigned = async (one: typeof a, by: typeof lax) => ({
      ...one,
      note: one.note + (await by.add(`old 0\n\n${one.note}`))
    })
    const first = await cosigned(a, lax)
    expect(
      await witnessesOfBoth({ ...first, note: first.note + line }, { ...b, note: b.note + line }, [lax.key])
    ).toEqual([])
    // A witness that lost its state: the same key, another history.
    const { key: kept } = JSON.parse(await readFile(join(folder, "lax-1.json"), "utf8"))
    await writeFile(join(folder, "lax-2.json"), JSON.stringify({ key: kept, signed: {} }))
    const second = await cosigned(b, await witness("lax-2.json"))
    expect(await witnessesOfBoth(first, second, [lax.key])).toEqual(["lax.example"])
    expect(await witnessesOfBoth(first, second, [])).toEqual([])
  })

  it("prove nothing where one is under a retired key, by the leaves that both share", async () => {
    const next = makeKey(did, "log")
    const rotated = [
      keyEntryOf("announced", log, 0),
      keyEntryOf("announced", next, 500),
      keyEntryOf("retired", log, 500)
    ]
    const both = didDocument(methodOf(key), methodOf(log), methodOf(next))
    const open = async (signer: typeof log, entries: ReadonlyArray<Uint8Array>) => {
      const place = join(folder, String(logs++))
      await writeLog(place, signer, entries)
      return openStory(place, both)
    }
    const [honest, thief] = [await open(next, [...rotated, entry(1)]), await open(log, [...rotated, entry(2)])]
    expect((await compareStories(honest, thief))?.index).toBe(3)
    expect(await isUnderRetiredKey(thief, 3)).toBe(true)
    expect(await isUnderRetiredKey(honest, 3)).toBe(false)
  })
})

describe("the script that asks a witness", () => {
  it("sends what continues the witness's size, and reports a refusal", async () => {
    const witness = await openWitness(doc, join(folder, "asked.json"), "witness.example")
    const server = createServer(async (request, response) => {
      let body = ""
      for await (const chunk of request) body += chunk
      await witness.add(body).then(
        (line: unknown) => response.end(line),
        ({ message, status }: any) => response.writeHead(status).end(message)
      )
    }).listen(0, "127.0.0.1")
    await new Promise((resolve) => server.once("listening", resolve))
    const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
    const [older, newer, forked] = [
      await story(entries.slice(0, 300)),
      await story(entries),
      await story(entries.with(1, entry(9_000)))
    ]
    for (const { note, place } of [older, newer])
      expect((await cosign(place, doc, url)).startsWith(`${note}— witness.example `)).toBe(true)
    for (const { place } of [older, forked]) await expect(cosign(place, doc, url)).rejects.toThrow("refused: 4")
    server.close()
  })
})

describe("the witness", () => {
  const checkpointNote = (leaves: ReadonlyArray<Uint8Array>) =>
    checkpointOf(log, leaves.length, rootOf(levelsOf(leaves), leaves.length))
  const requestOf = async (older: number, leaves: ReadonlyArray<Uint8Array>) => {
    const { place } = await story(leaves)
    const tiles = openTiles(place, leaves.length)
    const proof = older === 0 ? [] : await tiles.consistency(older)
    const lines = proof.map((hash: string) => `${Buffer.from(hash, "hex").toString("base64")}\n`)
    return `old ${older}\n${lines.join("")}\n${checkpointNote(leaves)}`
  }

  it("signs what continues, and nothing else, also after a restart", async () => {
    const file = join(folder, "witness.json")
    const witness = await openWitness(doc, file, "witness.example")
    const line = await witness.add(await requestOf(0, entries.slice(0, 10)))
    expect(line).toMatch(/^— witness\.example [A-Za-z0-9+/=]{104}\n$/)
    await witness.add(await requestOf(10, entries.slice(0, 300)))
    // A fork of the same size, a longer one, one with another's proof, and an older checkpoint.
    const forked = entries.with(5, entry(9_000))
    const refusals: ReadonlyArray<readonly [string, number]> = [
      [await requestOf(300, forked.slice(0, 300)), 409],
      [await requestOf(300, forked), 422],
      [(await requestOf(300, entries)).replace(/^old 300\n[^\n]+\n/, "old 300\n"), 422],
      [await requestOf(10, entries), 409],
      [(await requestOf(0, entries.slice(0, 200))).replace("old 0", "old 300"), 400],
      [(await requestOf(300, entries)).replace("— pay.example/log ", "— lax.example "), 403],
      [(await requestOf(300, entries)).replaceAll("pay.example", "evil.example"), 404],
      ["old -1\n\nnothing", 400],
      ["", 400]
    ]
    const again = await openWitness(doc, file, "witness.example")
    expect(again.key).toBe(witness.key)
    for (const signer of [witness, again])
      for (const [request, status] of refusals) await expect(signer.add(request)).rejects.toMatchObject({ status })
    await expect(again.add(await requestOf(300, entries))).resolves.toContain("witness.example")
  })

  it("signs what the log signed, line for line, and refuses a proof that is no base64", async () => {
    const witness = await openWitness(doc, join(folder, "lines.json"), "witness.example")
    const note = checkpointNote(entries.slice(0, 10))
    for (const line of ["an extension\n", "an extension"])
      await expect(witness.add(`old 0\n\n${note.replace("\n\n", `\n${line}\n`)}`)).rejects.toMatchObject({
        status: 403
      })
    await witness.add(`old 0\n\n${note}`)
    const next = await requestOf(10, entries.slice(0, 300))
    await expect(witness.add(next.replace("old 10\n", "old 10\n%\n"))).rejects.toMatchObject({ status: 400 })
    const root = rootOf(levelsOf(entries.slice(0, 10)), 10).toString("base64")
    const now = Math.floor(Date.now() / 1_000)
    const extended = (line: string) => `old 10\n\n${noteOf(log, `pay.example/log\n10\n${root}\nextension\n${line}`)}`
    expect(await witness.add(extended(`time ${now}\n`))).toContain("witness.example")
    for (const line of [`time ${now - 90_000}\n`, `time ${now + 90_000}\n`, ""])
      await expect(witness.add(extended(line))).rejects.toMatchObject({
        status: 403,
        message: expect.stringContaining("may be frozen")
      })
  })

  it("survives a request that was cut off", async () => {
    const script = fileURLToPath(new URL("../../../examples/receipts/witness.mjs", import.meta.url))
    const didFile = join(folder, "witness-did.json")
    await writeFile(didFile, JSON.stringify(doc))
    const port = await freePort()
    const child = spawn(process.execPath, [script, didFile, join(folder, "served.json"), "witness.example"], {
      env: { ...process.env, PORT: String(port) }
    })
    await once(child.stdout, "data")
    const socket = connect(port, "127.0.0.1")
    await once(socket, "connect")
    // It announces a body and keeps reading, so that it is cut off while it reads.
    const head = "host: witness\r\ncontent-length: 100\r\nexpect: 100-continue"
    socket.write(`POST /add-checkpoint HTTP/1.1\r\n${head}\r\n\r\n`)
    await once(socket, "data")
    socket.destroy()
    const note = checkpointNote(entries.slice(0, 10))
    for (const old of [0, 10]) {
      const body = `old ${old}\n\n${note}`
      const answer = await fetch(`http://127.0.0.1:${port}/add-checkpoint`, { method: "POST", body })
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("— witness.example ")])
    }
    child.kill()
  })

  it("signs one of two concurrent forks", async () => {
    const witness = await openWitness(doc, join(folder, "twins.json"), "witness.example")
    const requests = await Promise.all([entries, entries.with(1, entry(9_000))].map((one) => requestOf(0, one)))
    const answers = await Promise.allSettled(requests.map((request) => witness.add(request)))
    expect(answers.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"])
  })

  it("signs one of two forks that two processes are asked for, though one ended with the lock", async () => {
    const file = join(folder, "shared.json")
    const hold = `new (process.getBuiltinModule("node:sqlite").DatabaseSync)("${file}.held").exec("begin exclusive")`
    const ended = spawn(process.execPath, ["-e", `${hold}; process.kill(process.pid, "SIGKILL")`])
    await once(ended, "exit")
    expect(existsSync(`${file}.held`)).toBe(true)
    for (let round = 0; round < 5; round++) {
      await rm(file, { force: true })
      const [one, other] = await Promise.all([1, 2].map(() => openWitness(doc, file, "witness.example")))
      expect(one!.key).toBe(other!.key)
      const [mine, forked] = await Promise.all([entries, entries.with(1, entry(9_000))].map((all) => requestOf(0, all)))
      const answers = await Promise.allSettled([one!.add(mine!), other!.add(forked!)])
      expect(answers.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"])
    }
  })

  it("answers a proof of nothing, and an empty log with a root, with 422", async () => {
    const witness = await openWitness(doc, join(folder, "empty.json"), "witness.example")
    const proof = `${Buffer.alloc(32).toString("base64")}\n`
    const request = (await requestOf(0, entries.slice(0, 10))).replace("old 0\n", `old 0\n${proof}`)
    await expect(witness.add(request)).rejects.toMatchObject({ status: 422 })
    const made = `old 0\n\n${checkpointOf(log, 0, Buffer.alloc(32, 1))}`
    await expect(witness.add(made)).rejects.toMatchObject({ status: 422 })
    const other = (await requestOf(0, entries.slice(0, 10))).replaceAll("pay.example/log", "pay.example/logs")
    await expect(witness.add(other)).rejects.toMatchObject({ status: 404 })
  })

  it("signs under keys alone that the log announced, and no retired one's extension", async () => {
    const [next, unsaid] = [makeKey(did, "log"), makeKey(did, "log")]
    const place = join(folder, String(logs++))
    const keys = [keyEntryOf("announced", log, 0), entry(1)]
    const rotated = [...keys, keyEntryOf("announced", next, 500), keyEntryOf("retired", log, 500)]
    const asked = async (signer: typeof log, older: number, leaves: ReadonlyArray<Uint8Array>, isServed = true) => {
      const where = isServed ? place : join(folder, String(logs++))
      const note = await writeLog(where, signer, leaves)
      const proof: ReadonlyArray<string> = older === 0 ? [] : await openTiles(where, leaves.length).consistency(older)
      const lines = proof.map((hash) => `${Buffer.from(hash, "hex").toString("base64")}\n`)
      return `old ${older}\n${lines.join("")}\n${note}`
    }
    // Its document is older than the rotation, and contains a key that the log never announced.
    const before = didDocument(methodOf(key), methodOf(log), methodOf(unsaid))
    const witness = await openWitness(before, join(folder, "rotated.json"), "witness.example", place)
    await witness.add(await asked(log, 0, keys))
    await expect(witness.add(await asked(unsaid, 2, rotated))).rejects.toMatchObject({ status: 403 })
    expect(await witness.add(await asked(next, 2, rotated))).toContain("witness.example")
    const stolen = [...rotated, keyEntryOf("announced", log, 600), entry(9_000)]
    await expect(witness.add(await asked(log, 4, stolen, false))).rejects.toMatchObject({ status: 403 })
    await expect(witness.add(await asked(log, 4, rotated))).rejects.toMatchObject({ status: 403 })
    const after = [...rotated, entry(2)]
    await witness.add(await asked(next, 4, after))
    // A rotation that is rolled back: the log announces the former key again.
    const back = [...after, keyEntryOf("announced", log, 600), keyEntryOf("retired", next, 600)]
    await witness.add(await asked(log, 5, back))
    const retired = didDocument(methodOf(log, 0, 500), methodOf(next, 500))
    const fresh = await openWitness(retired, join(folder, "fresh.json"), "witness.example", join(folder, "nothing"))
    await expect(fresh.add(await asked(log, 0, stolen, false))).rejects.toMatchObject({ status: 403 })
    await fresh.add(await asked(next, 0, after))
    await expect(fresh.add(await asked(log, 5, [...after, entry(9_000)], false))).rejects.toMatchObject({ status: 403 })
    await fresh.add(await asked(next, 5, [...after, entry(3)]))
  })
})
