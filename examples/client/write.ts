// `npm run client -- URL`: writes the generated part of the client from a facilitator's document, by default that of
// `npm start` with the local profile.
import { writeFileSync } from "node:fs"
import process from "node:process"
import { generate } from "./generate.ts"

const url = process.argv[2] ?? "http://127.0.0.1:4022"
const response = await fetch(`${url}/openapi.json`)
const { table, types } = generate((await response.json()) as never)
writeFileSync(new URL("operations.mjs", import.meta.url), table)
writeFileSync(new URL("types.ts", import.meta.url), types)
