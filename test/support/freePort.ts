// Finds a port for a program that needs its port before it listens. If we asked the system for any port and released
// it, the next outgoing connection could take it. So these ports come from below the ephemeral range, and each test
// process of a run has its own part of that range.
import { createServer } from "node:net"
import process from "node:process"

/** Systems assign ports from 32 768 on (Linux) or 49 152 on; browsers and `fetch` refuse none of these. */
const portMin = 10_240
const portsOfAPart = 1_360
const parts = 16

const part = Number(process.env["VITEST_POOL_ID"] ?? process.pid) % parts
let next = Math.floor(Math.random() * portsOfAPart)

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** A port without a listener at this moment, and that this process has not used before. */
export const freePort = async (): Promise<number> => {
  for (let tried = 0; tried < portsOfAPart; tried++) {
    next = (next + 1) % portsOfAPart
    const port = portMin + part * portsOfAPart + next
    if (await isFree(port)) return port
  }
  throw new Error(`no free port between ${portMin + part * portsOfAPart} and ${portsOfAPart} above it`)
}
