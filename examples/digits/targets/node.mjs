// node node.mjs MICROPYTHON.MJS < {"job": FILE, "path": [FOLDER, …], "files": [FILE, …]}: prints the answer as JSON.
import fs from "node:fs";
import { pathToFileURL } from "node:url";
import { classify } from "./micropython.mjs";

const told = JSON.parse(fs.readFileSync(0, "utf8"));
const { loadMicroPython } = await import(pathToFileURL(process.argv[2]).href);
const files = Object.fromEntries(told.files.map((file) => [file, fs.readFileSync(file)]));
console.log(await classify(loadMicroPython, files, told.job, told.path, false));
process.exit(0);
