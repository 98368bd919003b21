// The lower bound for any facilitator, in the same run: a server that only parses a body as JSON and refuses it, and
// one signature check. Neither has a bar; they show the avoidable part of a refusal's figure.
import { generateKeyPairSync, randomBytes, sign, verify } from "node:crypto"
import { createServer } from "node:http"
import process from "node:process"

const refusal = Buffer.from(
  JSON.stringify({
    isValid: false,
    invalidReason: "invalid_request",
    invalidMessage: "paymentRequirements.amount: a string is required"
  })
)
const head = {
  "content-type": "application/json",
  "content-length": refusal.length,
  "x-content-type-options": "nosniff",
  "cache-control": "no-store"
}

const isJson = (bytes: Buffer): boolean => {
  try {
    JSON.parse(bytes.toString("utf8"))
    return true
  } catch {
    return false
  }
}

/** Answers every request the same way, after reading and parsing it. */
const answerAlone = (port: number): void => {
  createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      response.writeHead(isJson(Buffer.concat(chunks)) ? 400 : 422, head)
      response.end(refusal)
    })
  }).listen(port, "127.0.0.1")
}

const checks = 3_000

/** Milliseconds of processor time to check a wrong Ed25519 signature. */
export const signatureMillis = (): number => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const message = randomBytes(32)
  const signature = sign(null, message, privateKey)
  signature[0]! ^= 1
  const check = () => {
    for (let done = 0; done < checks; done++)
      if (verify(null, message, publicKey, signature)) throw new Error("a wrong signature was taken")
  }
  check()
  const before = process.cpuUsage()
  check()
  const { system, user } = process.cpuUsage(before)
  return (system + user) / 1_000 / checks
}

// Runs as a separate program, with the port to listen on.
if (import.meta.main) answerAlone(Number(process.argv[2]))
