// Resets the write-ahead log of an embedded database that does not open, as `pg_resetwal` does, which PGlite lacks: an
// empty log with one shutdown checkpoint, and a control file that points to it. Changes since the last checkpoint that
// had not reached the tables are lost, and a transaction from that time may be there in part. A missing control file is
// replaced by that of a new database of this program, with counters higher than any in the folder.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const pageSize = 8_192
const segmentSize = 16 * 1_024 * 1_024
/** Offsets of the control file: PostgreSQL 17 and 18, 64-bit alignment. */
const at = { state: 16, time: 24, checkPoint: 32, copy: 40, copyLength: 88, minRecovery: 136, minRecoveryLength: 40 }
/** Within the checkpoint's copy. */
const copyAt = { redo: 0, nextXid: 24, nextOid: 32 }
const shutDown = 1
const longHeader = 0x0002
const checkpointShutdown = 0x00
const shortData = 255
const transactionsPerPage = 32_768

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1
  return value >>> 0
})

/** CRC-32C, as PostgreSQL has it. */
const crc32c = (...parts: ReadonlyArray<Uint8Array>): number => {
  let crc = 0xffff_ffff
  for (const part of parts) for (const byte of part) crc = table[(crc ^ byte) & 0xff]! ^ (crc >>> 8)
  return (crc ^ 0xffff_ffff) >>> 0
}

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Offset of the checksum; undefined in a damaged file. */
const checksumOffset = (control: Uint8Array): number | undefined => {
  for (let offset = 200; offset <= 400; offset += 4)
    if (viewOf(control).getUint32(offset, true) === crc32c(control.subarray(0, offset))) return offset
  return undefined
}

const segmentName = (segment: bigint): string => {
  const perId = 0x1_0000_0000n / BigInt(segmentSize)
  const hex = (value: bigint) => value.toString(16).toUpperCase().padStart(8, "0")
  return `00000001${hex(segment / perId)}${hex(segment % perId)}`
}

/** The first segment after all existing ones, and after the control file's. */
const nextSegment = (folder: string, control: Uint8Array): bigint => {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => /^[0-9A-F]{24}$/.test(name)) : []
  const perId = 0x1_0000_0000n / BigInt(segmentSize)
  const found = names.map((name) => BigInt(`0x${name.slice(8, 16)}`) * perId + BigInt(`0x${name.slice(16)}`))
  const pointed = viewOf(control).getBigUint64(at.checkPoint, true) / BigInt(segmentSize)
  return [...found, pointed].reduce((most, one) => (one > most ? one : most), 0n) + 1n
}

/** A control file made from a new database's: its counters are higher than any in the folder's files. */
const replaced = (database: string, template: Uint8Array): Uint8Array => {
  const control = Uint8Array.from(template)
  const pages = readdirSync(join(database, "pg_xact"))
    .map((name) => Number.parseInt(name, 16) * 32 + statSync(join(database, "pg_xact", name)).size / pageSize)
    .reduce((most, one) => Math.max(most, one), 1)
  const files = readdirSync(join(database, "base"), { recursive: true }).map((name) =>
    Number.parseInt(/(\d+)(?:_\w+)?(?:\.\d+)?$/.exec(String(name))?.[1] ?? "0", 10)
  )
  const view = viewOf(control)
  view.setBigUint64(at.copy + copyAt.nextXid, BigInt(pages * transactionsPerPage - 1), true)
  view.setUint32(at.copy + copyAt.nextOid, Math.max(100_000, ...files) + 10_000, true)
  return control
}

/** The first page of a log with one shutdown checkpoint. */
const logPage = (magic: number, systemId: bigint, address: bigint, checkpoint: Uint8Array): Uint8Array => {
  const page = new Uint8Array(pageSize)
  const view = viewOf(page)
  view.setUint16(0, magic, true)
  view.setUint16(2, longHeader, true)
  view.setUint32(4, 1, true)
  view.setBigUint64(8, address, true)
  view.setBigUint64(24, systemId, true)
  view.setUint32(32, segmentSize, true)
  view.setUint32(36, pageSize, true)
  const record = page.subarray(40, 40 + 24 + 2 + checkpoint.length)
  viewOf(record).setUint32(0, record.length, true)
  record[16] = checkpointShutdown
  record[24] = shortData
  record[25] = checkpoint.length
  record.set(checkpoint, 26)
  viewOf(record).setUint32(20, crc32c(record.subarray(24), record.subarray(0, 20)), true)
  return page
}

export interface Template {
  /** The control file of a new database of this program. */
  readonly control: Uint8Array
  /** The first bytes of its log. */
  readonly log: Uint8Array
}

/** Resets the log of a folder that no process uses. Returns whether the control file had to be replaced. */
export const resetLog = (database: string, template: Template): { readonly isControlReplaced: boolean } => {
  const path = join(database, "global", "pg_control")
  const found = existsSync(path) ? new Uint8Array(readFileSync(path)) : new Uint8Array()
  const isWhole = found.length >= pageSize && checksumOffset(found) !== undefined
  const control = isWhole ? found : replaced(database, template.control)
  const wal = join(database, "pg_wal")
  const segment = nextSegment(wal, control)
  const record = segment * BigInt(segmentSize) + 40n
  const view = viewOf(control)
  view.setUint32(at.state, shutDown, true)
  view.setBigUint64(at.checkPoint, record, true)
  view.setBigUint64(at.copy + copyAt.redo, record, true)
  control.fill(0, at.minRecovery, at.minRecovery + at.minRecoveryLength)
  const offset = checksumOffset(template.control)!
  view.setUint32(offset, crc32c(control.subarray(0, offset)), true)
  const page = logPage(
    viewOf(template.log).getUint16(0, true),
    view.getBigUint64(0, true),
    segment * BigInt(segmentSize),
    control.subarray(at.copy, at.copy + at.copyLength)
  )
  mkdirSync(wal, { recursive: true })
  for (const name of readdirSync(wal)) if (/^[0-9A-F]{24}$/.test(name)) rmSync(join(wal, name))
  const whole = new Uint8Array(segmentSize)
  whole.set(page)
  writeFileSync(join(wal, segmentName(segment)), whole)
  writeFileSync(path, control)
  return { isControlReplaced: !isWhole }
}

/** Finds damage in a database's folder by its files; undefined without signs of damage. */
export const damageOf = (database: string): string | undefined => {
  const path = join(database, "global", "pg_control")
  if (!existsSync(path)) return "its control file (global/pg_control) is missing"
  const control = new Uint8Array(readFileSync(path))
  if (control.length < pageSize || checksumOffset(control) === undefined)
    return "its control file (global/pg_control) is damaged"
  const pointed = viewOf(control).getBigUint64(at.checkPoint, true) / BigInt(segmentSize)
  const log = join(database, "pg_wal", segmentName(pointed))
  if (!existsSync(log)) return `its write-ahead log (${segmentName(pointed)}) is missing`
  return statSync(log).size === segmentSize ? undefined : `its write-ahead log (${segmentName(pointed)}) is cut off`
}
