"""What runs on a build node: conversion, verification, engine building, and the Celery worker around them."""
