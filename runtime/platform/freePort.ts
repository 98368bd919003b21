// Finds a free port, for a program that needs the number before it opens the port. Another program may take it in
// between: then the start fails with that message, and the next one gets another port.
import { Effect } from "effect"
import { type AddressInfo, createServer } from "node:net"

export const freePort: Effect.Effect<number> = Effect.callback<number>((resume) => {
  const server = createServer().once("error", (error) => resume(Effect.die(error)))
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})
