// A TCP relay in front of a server, like a floating address of a primary: clients keep its address while the server
// behind it changes. A cut drops every connection and refuses new ones until a server is set.
import { type AddressInfo, connect, createServer, type Socket } from "node:net"

export interface Relay {
  readonly port: number
  /** Drops every connection and refuses new ones. */
  readonly cut: () => void
  /** Sends new connections to this port. */
  readonly connectTo: (port: number) => void
  readonly close: () => Promise<void>
}

export const startRelay = async (serverPort: number): Promise<Relay> => {
  let target: number | undefined = serverPort
  const sockets = new Set<Socket>()
  const track = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket))
  }
  const server = createServer((from) => {
    if (target === undefined) return void from.destroy()
    track(from)
    const to = track(connect(target, "127.0.0.1"))
    from.on("close", () => to.destroy())
    to.on("close", () => from.destroy())
    from.pipe(to).pipe(from)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const cut = () => {
    target = undefined
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    connectTo: (port) => void (target = port),
    close: () => {
      cut()
      return new Promise((resolve) => void server.close(() => resolve()))
    }
  }
}
