// A dump of the embedded database without the parts that no test reads: the two template databases, the log before its
// last checkpoint, and the unwritten rest of the log's segment. Forty megabytes become nine, and each of some hundred
// databases of a test run begins by unpacking them.
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

const block = 512
/** The folders of `template1` and `template0`; PostgreSQL fixes their numbers. */
const templates = /^\/base\/[14]\//
const segments = /^\/pg_wal\/[0-9A-F]{24}$/
/** Zeros to keep after the log's last byte: a reader that continues there finds a page without a record. */
const zerosLeft = 65_536

const textOf = (bytes: Uint8Array): string => {
  const end = bytes.indexOf(0)
  return new TextDecoder("latin1").decode(end < 0 ? bytes : bytes.subarray(0, end))
}

const octal = (value: number, digits: number): Uint8Array =>
  new TextEncoder().encode(`${value.toString(8).padStart(digits, "0")}\0`)

/** The same header for a file of another length. */
const withSize = (header: Uint8Array, size: number): Uint8Array => {
  const changed = Uint8Array.from(header)
  changed.set(octal(size, 11), 124)
  changed.fill(0x20, 148, 156)
  changed.set(
    octal(
      changed.reduce((sum, byte) => sum + byte, 0),
      6
    ),
    148
  )
  return changed
}

/** The length of a segment up to the page end after its last record. */
const writtenOf = (content: Uint8Array): number => {
  let end = content.length
  while (end > 0 && content[end - 1] === 0) end--
  return Math.min(content.length, Math.ceil(end / 8_192) * 8_192 + zerosLeft)
}

const paddedTo = (size: number): number => Math.ceil(size / block) * block

/**
 * The number of bytes of a file to keep: none of a template's file or of another segment, and the written beginning of
 * the current segment.
 */
const keptOf = (name: string, content: Uint8Array, written: string): number | undefined => {
  if (templates.test(name)) return undefined
  if (!segments.test(name)) return content.length
  return name.endsWith(written) ? writtenOf(content) : undefined
}

interface ArchivedFile {
  readonly header: Uint8Array
  readonly name: string
  readonly isFolder: boolean
  readonly content: Uint8Array
}

/** The entries of an archive that the database made. */
function* filesIn(archive: Uint8Array): Generator<ArchivedFile> {
  for (let at = 0; at + block <= archive.length && archive[at] !== 0;) {
    const header = archive.subarray(at, at + block)
    const size = Number.parseInt(textOf(header.subarray(124, 136)), 8)
    const content = archive.subarray(at + block, at + block + size)
    at += block + paddedTo(size)
    yield { header, name: textOf(header.subarray(0, 100)), isFolder: header[156] === 0x35, content }
  }
}

/** Writes the archive's files into a new folder that only this user may read. */
export const unpackArchive = (archive: Uint8Array, folder: string): void => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const { content, isFolder, name } of filesIn(archive)) {
    const path = join(folder, name)
    mkdirSync(isFolder ? path : dirname(path), { recursive: true, mode: 0o700 })
    if (!isFolder) writeFileSync(path, content, { mode: 0o600 })
  }
}

/** Rewrites the archive that the database makes of its folder; `written` is the segment that its log needs. */
export const slimDump = (archive: Uint8Array, written: string): Uint8Array => {
  const parts: Array<Uint8Array> = []
  for (const { content, header, name } of filesIn(archive)) {
    const length = keptOf(name, content, written)
    if (length === undefined) continue
    const padded = new Uint8Array(paddedTo(length))
    padded.set(content.subarray(0, length))
    parts.push(length === content.length ? header : withSize(header, length), padded)
  }
  return Uint8Array.from(Buffer.concat([...parts, new Uint8Array(2 * block)]))
}
