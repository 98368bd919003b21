// @ts-check
// Stores of a seller's sales: in memory, in a folder for the processes of one machine, in a table for several machines.
import { randomUUID } from "node:crypto"
import { link, mkdir, open, readFile, unlink } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"

/**
 * Stored values never change: `putIfAbsent` returns the stored value, the caller's own or an earlier one.
 * @typedef {{
 *   get: (key: string) => Promise<string | undefined>,
 *   putIfAbsent: (key: string, value: string) => Promise<string>
 * }} Store
 */

/**
 * Lost when the process ends: for tests, and for goods that may be lost with it. Evicts the oldest entries.
 * @param {number} entriesMax
 * @returns {Store}
 */
export const memoryStore = (entriesMax = 100_000) => {
  const entries = /** @type {Map<string, string>} */ (new Map())
  return {
    get: async (key) => entries.get(key),
    putIfAbsent: async (key, value) => {
      const stored = entries.get(key)
      if (stored !== undefined) return stored
      entries.set(key, value)
      const [oldest] = entries.keys()
      if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest)
      return value
    }
  }
}

/** Writes a folder's names to the disk: a crash of the machine loses a newer one. @param {string} folder */
const syncFolder = async (folder) => {
  const file = await open(folder, "r")
  await file.sync().finally(() => file.close())
}

/** Makes a folder with its parents, and writes each new name to the disk. @param {string} folder */
const makeFolder = async (folder) => {
  const made = await mkdir(folder, { recursive: true })
  if (made === undefined) return
  for (let at = resolve(folder); at.length >= resolve(made).length; at = dirname(at)) await syncFolder(dirname(at))
}

/**
 * One file per entry in a folder, for the processes of one machine. Survives a crash of the process and of the machine.
 * @param {string} folder
 * @returns {Store}
 */
export const fileStore = (folder) => {
  const ready = makeFolder(folder)
  /** @param {string} key */
  const pathOf = (key) => join(folder, key.replaceAll("/", "-"))
  /** @type {Store["get"]} */
  const get = async (key) => {
    try {
      return await readFile(pathOf(key), "utf8")
    } catch (error) {
      if (/** @type {{ code?: string }} */ (error).code === "ENOENT") return undefined
      throw error
    }
  }
  return {
    get,
    putIfAbsent: async (key, value) => {
      await ready
      const draft = join(folder, `${randomUUID()}.draft`)
      const file = await open(draft, "wx")
      try {
        await file.writeFile(value)
        await file.sync()
      } finally {
        await file.close()
      }
      try {
        // Creating a link is atomic, and never replaces an existing one.
        await link(draft, pathOf(key))
        await syncFolder(folder)
        return value
      } catch (error) {
        if (/** @type {{ code?: string }} */ (error).code !== "EEXIST") throw error
        // The other process may not have written its name to the disk yet.
        await syncFolder(folder)
        return (await get(key)) ?? value
      } finally {
        await unlink(draft)
      }
    }
  }
}

/** The table of `sqlStore`, for PostgreSQL. */
export const soldTable = `create table if not exists sold (
  key text primary key, value text not null, stored_at timestamptz not null default now())`

/**
 * For several machines: a table in PostgreSQL, through any client's query function that returns `{ rows }`.
 * @param {(sql: string, values: Array<string>) => Promise<{ rows: Array<any> }>} query
 * @returns {Store}
 */
export const sqlStore = (query) => {
  /** @type {Store["get"]} */
  const get = async (key) => (await query("select value from sold where key = $1", [key])).rows[0]?.value
  return {
    get,
    putIfAbsent: async (key, value) => {
      await query("insert into sold (key, value) values ($1, $2) on conflict do nothing", [key, value])
      return (await get(key)) ?? value
    }
  }
}
