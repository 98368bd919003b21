// Reads a downloaded log, a folder or a URL that holds `checkpoint` and `tile/…` (C2SP tlog-tiles): roots of any range
// of leaves, proofs, entries. The download itself proves nothing: compare a root with a signed checkpoint.
import { hexOf, leafHash, nodeHash, openKey, sha256 } from "./verify.mjs"

/** Bytes of a file below a folder or URL. */
export const readBytes = async (place, path) => {
  if (!/^https?:/.test(place)) {
    const { readFile } = await import("node:fs/promises")
    return new Uint8Array(await readFile(`${place}/${path}`))
  }
  const answer = await fetch(`${place.replace(/\/+$/, "")}/${path}`)
  if (!answer.ok) throw new Error(`${place}/${path} answered ${answer.status}`)
  return new Uint8Array(await answer.arrayBuffer())
}

export const readText = async (place, path) => new TextDecoder().decode(await readBytes(place, path))

const above = (place) => place.replace(/\/+[^/]+\/*$/, "")

/** The list of epochs at a place, oldest first; undefined without a list, as in a copy of a single epoch. */
const readEpochs = async (place) => {
  const text = await readText(place, "epochs").catch(() => undefined)
  return text === undefined ? undefined : JSON.parse(text).epochs
}

/**
 * The newest checkpoint of a place, and the place of its log's tiles. HOST/log is the first epoch, and lists the
 * others, each below its name.
 */
export const readNewest = async (place) => {
  const epoch = (await readEpochs(place))?.at(-1).origin.split("/log/")[1]
  const own = epoch === undefined ? place : `${place.replace(/\/+$/, "")}/${epoch}`
  return { note: await readText(own, "checkpoint"), place: own }
}

/** Path of a tile of 1 to 256 hashes; `level` is a number, or `entries`. */
export const tilePath = (level, index, width) => {
  const groups = String(index)
    .padStart(Math.ceil(String(index).length / 3) * 3, "0")
    .match(/.{3}/g)
  const name = groups.map((digits, at) => (at < groups.length - 1 ? `x${digits}` : digits)).join("/")
  return `tile/${level}/${name}${width < 256 ? `.p/${width}` : ""}`
}

/** The largest power of two below a size. */
const half = (size) => 2 ** ((size - 1).toString(2).length - 1)

/** A log of `size` leaves. Hashes are in hex; a missing or short tile throws. */
export const openTiles = (place, size) => {
  const kept = new Map()
  const tile = (level, index) => {
    const count = level === "entries" ? size : Math.floor(size / 256 ** level)
    const path = tilePath(level, index, Math.min(256, count - index * 256))
    if (!kept.has(path)) {
      const read = readBytes(place, path)
      // The next reader downloads a failed tile again.
      read.catch(() => kept.delete(path))
      kept.set(path, read)
    }
    return kept.get(path)
  }
  const hashesOf = async (level, from, to) => {
    const bytes = await tile(level, Math.floor(from / 256))
    const start = (from % 256) * 32
    if (bytes.length < start + (to - from) * 32) throw new Error(`a tile of level ${level} is short`)
    return Array.from({ length: to - from }, (_, at) => hexOf(bytes.subarray(start + at * 32, start + at * 32 + 32)))
  }
  const fold = async (hashes) => {
    if (hashes.length === 1) return hashes[0]
    const middle = hashes.length / 2
    return nodeHash(await fold(hashes.slice(0, middle)), await fold(hashes.slice(middle)))
  }
  /** Root of the leaves from `from` up to `to`, as RFC 9162 splits a tree. */
  const root = async (from, to) => {
    const length = to - from
    if (length === 0) return sha256()
    if (!Number.isInteger(Math.log2(length))) {
      const middle = from + half(length)
      return nodeHash(await root(from, middle), await root(middle, to))
    }
    const level = Math.floor(Math.log2(length) / 8)
    return fold(await hashesOf(level, from / 256 ** level, to / 256 ** level))
  }
  /** The audit path of a leaf in the first `to` leaves, from the leaf up. */
  const inclusion = async (index, to = size, from = 0) => {
    if (to - from === 1) return []
    const middle = from + half(to - from)
    return index < middle
      ? [...(await inclusion(index, middle, from)), await root(middle, to)]
      : [...(await inclusion(index, to, middle)), await root(from, middle)]
  }
  /** The proof that all leaves continue the first `older`. */
  const consistency = async (older, to = size, from = 0, isWhole = true) => {
    if (from + older === to) return isWhole ? [] : [await root(from, to)]
    const left = half(to - from)
    return older <= left
      ? [...(await consistency(older, from + left, from, isWhole)), await root(from + left, to)]
      : [...(await consistency(older - left, to, from + left, false)), await root(from, from + left)]
  }
  /** The bytes of an entry, checked against its leaf's hash. */
  const entry = async (index) => {
    const bytes = await tile("entries", Math.floor(index / 256))
    let at = 0
    for (let skip = index % 256; skip > 0; skip--) at += 2 + bytes[at] * 256 + bytes[at + 1]
    const found = bytes.subarray(at + 2, at + 2 + bytes[at] * 256 + bytes[at + 1])
    if ((await leafHash(found)) !== (await root(index, index + 1))) throw new Error(`entry ${index} is not its leaf's`)
    return found
  }
  return { size, root, inclusion, consistency, entry }
}

/** A log's entries about its keys, each proven to be in the tree. Reads the listed entries, or all without a list. */
export const readKeys = async (place, tree, tiles) => {
  const epochs = (await readEpochs(place)) ?? (await readEpochs(above(place))) ?? []
  const listed = epochs.find(({ origin }) => origin === tree.origin)?.keyEntries
  const indexes = listed ?? Array.from({ length: tree.size }, (_, index) => index)
  const events = []
  for (const index of indexes.filter((one) => one < tree.size)) {
    const entry = await tiles.entry(index)
    if (entry[0] !== 2) continue
    const text = new TextDecoder().decode(entry.subarray(1))
    events.push(await openKey(tree, { entry: text, index, hashes: await tiles.inclusion(index) }))
  }
  return events
}
